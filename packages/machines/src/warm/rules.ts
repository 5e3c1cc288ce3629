/** Which suspended machines keep their paused VMM in memory, and for how long. */
import type { MachineConfig } from "@hibernaut/domain/config";

/** A machine in a pool is kept until it is taken, or others need the memory: a year stands for that. */
export const POOL_KEEP_WARM_MS = 365 * 24 * 3_600_000;

/** A suspended machine whose VMM is kept. */
export interface KeptMachine {
  machineId: string;
  /** When it was suspended, in milliseconds since 1970. */
  sinceMs: number;
  /** When its time is over, in milliseconds since 1970. */
  untilMs: number;
  /** Memory that goes with the VMM, and with nothing else: the guest's own RAM is a file that the kernel can drop. */
  bytes: number;
}

/** Why a kept VMM ends before its machine starts. These words are labels of the metric. */
export const EVICTION_REASONS = [
  "expired",
  "budget",
  "pressure",
  /** Another machine needs the memory to start. */
  "room",
  "drain",
  "shutdown",
  /** Its machine was stopped, updated or destroyed, or lost its snapshot. */
  "discarded",
  /** Someone else ended it. */
  "gone",
] as const;
export type EvictionReason = (typeof EVICTION_REASONS)[number];

export interface Eviction {
  machineId: string;
  reason: EvictionReason;
}

/** Returns how long the VMM of a machine is kept, in milliseconds: the longest time that a service wants, 0 for none. */
export function keepWarmMs({ services = [] }: Pick<MachineConfig, "services">, defaultS: number): number {
  const wanted = services.map((service) => service.keep_warm ?? defaultS);
  return 1000 * (wanted.length === 0 ? defaultS : Math.max(...wanted));
}

/**
 * Returns which kept VMMs end so that another machine has `bytes` more: those that were suspended longest ago, as many as
 * it takes. `except` is that machine's own.
 */
export function evictionsFor(kept: readonly KeptMachine[], bytes: number, except: string): Eviction[] {
  const others = kept.filter(({ machineId }) => machineId !== except);
  return oldestFor(bytes, oldestFirst(others)).map(because("room"));
}

/**
 * Returns which kept VMMs end now: those whose time is over, and, beginning with the one that was suspended longest ago,
 * as many as the budget is exceeded by. Under memory pressure, one more.
 */
export function evictions(
  kept: readonly KeptMachine[],
  { nowMs, budgetBytes, pressure }: { nowMs: number; budgetBytes: number; pressure: boolean },
): Eviction[] {
  const expired = kept.filter(({ untilMs }) => untilMs <= nowMs);
  const rest = oldestFirst(kept.filter(({ untilMs }) => untilMs > nowMs));
  const bytes = rest.reduce((sum, machine) => sum + machine.bytes, 0);
  const over = oldestFor(bytes - budgetBytes, rest);
  const more = pressure ? rest.slice(over.length, over.length + 1) : [];
  return [...expired.map(because("expired")), ...over.map(because("budget")), ...more.map(because("pressure"))];
}

function oldestFirst(kept: readonly KeptMachine[]): KeptMachine[] {
  return kept.toSorted((one, other) => one.sinceMs - other.sinceMs);
}

/** The first machines, as many as it takes for `bytes`. */
function oldestFor(bytes: number, machines: readonly KeptMachine[]): KeptMachine[] {
  const chosen: KeptMachine[] = [];
  let freed = 0;
  for (const machine of machines) {
    if (freed >= bytes) break;
    freed += machine.bytes;
    chosen.push(machine);
  }
  return chosen;
}

function because(reason: EvictionReason): (machine: KeptMachine) => Eviction {
  return ({ machineId }) => ({ machineId, reason });
}
