/**
 * Keeps the paused VMMs of suspended machines for a while, as a cache of their snapshots: a start that finds one lets its
 * CPUs continue instead of loading the snapshot. Nothing depends on them, so any of them can end at any time.
 */
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { Logger } from "../dependencies.ts";
import type { MemoryPressure } from "./pressure.ts";
import { type Eviction, type EvictionReason, evictions, evictionsFor, type KeptMachine } from "./rules.ts";

/** A machine that expires ends this much later at most; the kernel needs about as long to notice a lack of memory. */
const CHECK_INTERVAL_MS = 1000;

interface WarmKeeperOptions {
  budgetBytes: number;
  pressure: Pick<MemoryPressure, "short">;
  /** Ends the machine's kept VMM, unless the machine has been started meanwhile. */
  evict(machineId: string, reason: EvictionReason): Promise<void>;
  /** A VMM is no longer kept: its machine was started, or it ended. Times are milliseconds since 1970. */
  ended?(kept: { machine: string; from: number; until: number }): void;
  log: Logger;
  now(): number;
}

export class WarmKeeper {
  readonly #options: WarmKeeperOptions;
  readonly #kept = new Map<string, KeptMachine>();
  readonly #evicted = new Map<EvictionReason, number>();
  #closedFor: EvictionReason | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WarmKeeperOptions) {
    this.#options = options;
  }

  /** Whether a VMM may be kept at all now. */
  get open(): boolean {
    return this.#closedFor === undefined && this.#options.budgetBytes > 0;
  }

  /** What all that are kept may take together. */
  get budgetBytes(): number {
    return this.#options.budgetBytes;
  }

  /** How much more may be kept without that another one goes. */
  get freeBytes(): number {
    return this.#options.budgetBytes - this.evictable("");
  }

  /** What is kept now, in no particular order. */
  get kept(): KeptMachine[] {
    return [...this.#kept.values()];
  }

  /** How many VMMs have ended for each reason since the platform started. */
  get evicted(): ReadonlyMap<EvictionReason, number> {
    return this.#evicted;
  }

  /** How long the machine's VMM is still kept, as a time in milliseconds since 1970. Undefined if it is not. */
  until(machineId: string): number | undefined {
    return this.#kept.get(machineId)?.untilMs;
  }

  /** Since when the machine's VMM is kept, in milliseconds since 1970. Undefined if it is not. */
  since(machineId: string): number | undefined {
    return this.#kept.get(machineId)?.sinceMs;
  }

  /** A machine was suspended, and its VMM kept for `ms`. */
  add(machineId: string, { ms, bytes }: { ms: number; bytes: number }): void {
    const sinceMs = this.#options.now();
    this.#kept.set(machineId, { machineId, sinceMs, untilMs: sinceMs + ms, bytes });
    this.#timer ??= setInterval(
      () => this.#letGo(this.#due(this.#options.pressure.short())),
      CHECK_INTERVAL_MS,
    ).unref();
    // A VMM that was being captured when the doors closed.
    this.#letGo(this.#closedFor === undefined ? this.#due(false) : [{ machineId, reason: this.#closedFor }]);
  }

  /** The machine's VMM is kept for `ms` more at most. */
  shorten(machineId: string, ms: number): void {
    const kept = this.#kept.get(machineId);
    if (kept === undefined) return;
    this.#kept.set(machineId, { ...kept, untilMs: Math.min(kept.untilMs, this.#options.now() + ms) });
  }

  /** The machine's VMM runs again, or has ended for `reason`. */
  remove(machineId: string, reason?: EvictionReason): void {
    const kept = this.#kept.get(machineId);
    if (kept === undefined) return;
    this.#kept.delete(machineId);
    this.#options.ended?.({ machine: machineId, from: kept.sinceMs, until: this.#options.now() });
    if (reason !== undefined) this.#evicted.set(reason, (this.#evicted.get(reason) ?? 0) + 1);
    if (this.#kept.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** How many bytes go with all that are kept, except the VMM of this machine. */
  evictable(except: string): number {
    let bytes = 0;
    for (const kept of this.#kept.values()) if (kept.machineId !== except) bytes += kept.bytes;
    return bytes;
  }

  /** Ends as many VMMs as it takes for `bytes`, and resolves when they have ended. Undefined when there are none. */
  makeRoom(bytes: number, except: string): Promise<void> | undefined {
    const due = evictionsFor(this.kept, bytes, except);
    return due.length === 0 ? undefined : this.#carryOut(due);
  }

  /** Ends all that are kept, and keeps no more until {@link reopen}. */
  shut(reason: EvictionReason): void {
    this.#closedFor = reason;
    this.#letGo(this.kept.map(({ machineId }) => ({ machineId, reason })));
  }

  /** Keeps VMMs again. */
  reopen(): void {
    this.#closedFor = undefined;
  }

  #letGo(due: readonly Eviction[]): void {
    background(this.#carryOut(due), "letting go of what is kept warm");
  }

  #due(pressure: boolean): Eviction[] {
    const { now, budgetBytes } = this.#options;
    return evictions(this.kept, { nowMs: now(), budgetBytes, pressure });
  }

  async #carryOut(due: readonly Eviction[]): Promise<void> {
    const ends = due.map(async ({ machineId, reason }) => {
      this.remove(machineId, reason);
      await this.#options.evict(machineId, reason).catch((error: unknown) => {
        this.#options.log.warn({ machine: machineId, reason: messageOf(error) }, "a kept VMM cannot be ended");
      });
    });
    await Promise.all(ends);
  }
}
