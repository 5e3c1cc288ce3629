/** Which suspended machines keep their paused VMM in memory, and for how long. */
import type { MachineConfig } from "@hibernaut/domain/config";

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
  const oldestFirst = kept.toSorted((one, other) => one.sinceMs - other.sinceMs);
  const chosen: Eviction[] = [];
  let freed = 0;
  for (const machine of oldestFirst) {
    if (freed >= bytes) break;
    if (machine.machineId === except) continue;
    freed += machine.bytes;
    chosen.push({ machineId: machine.machineId, reason: "room" });
  }
  return chosen;
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
  const rest = kept.filter(({ untilMs }) => untilMs > nowMs).toSorted((one, other) => one.sinceMs - other.sinceMs);
  let bytes = rest.reduce((sum, machine) => sum + machine.bytes, 0);
  const over: Eviction[] = [];
  for (const machine of rest) {
    if (bytes <= budgetBytes) break;
    bytes -= machine.bytes;
    over.push({ machineId: machine.machineId, reason: "budget" });
  }
  const oldest = rest[over.length];
  if (pressure && oldest !== undefined) over.push({ machineId: oldest.machineId, reason: "pressure" });
  return [...expired.map(({ machineId }): Eviction => ({ machineId, reason: "expired" })), ...over];
}
