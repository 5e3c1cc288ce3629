/** Keeps this host's lease alive, publishes the host under it, and says by a steady clock whether it is alive. */
import { uptime } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { within } from "@hibernaut/lib/async";
import type { HostLease, LeaseState } from "./cluster.ts";
import { type Condition, type Directory, type Lease, LeaseGone } from "./contract.ts";
import type { HostRecord } from "./keys.ts";

/** The part of the lease's time after which it is renewed: two renewals may fail before it ends. */
const RENEW_AFTER = 0.3;
/** Before a renewal that failed is tried again. */
const RETRY_MS = 500;
/** How much of the time is not used, in case that two clocks differ in speed: one part in a hundred. */
const CLOCK_MARGIN = 0.01;
/** How long ending the lease may take when the platform ends. It ends by itself otherwise. */
const REVOKE_MS = 2000;

interface LeaseOptions {
  directory: Directory;
  /** Where the record of this host is published. */
  key: string;
  record(): HostRecord;
  /** What must be true for the host to be published: its own member record. Rejects when it is no longer a member. */
  member(signal: AbortSignal): Promise<Condition>;
  ttlMs: number;
  /** How long after the lease's end the state is `grace`. */
  graceMs: number;
  /** Is told of each renewal that failed. Default: nobody. */
  onFault?(error: unknown): void;
  /** A steady clock, in milliseconds. Default: since the host booted, with the time in which all of it was suspended. */
  now?: () => number;
}

export class LeaseKeeper implements HostLease {
  readonly #options: LeaseOptions;
  readonly #now: () => number;
  readonly #listeners = new Set<(state: LeaseState) => void>();
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;
  #lease: Lease | undefined;
  #published = "";
  #liveUntil = Number.NEGATIVE_INFINITY;
  #term = 0;
  #told: LeaseState = "lost";
  #toldTerm = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => uptime() * 1000);
  }

  /** Compared with the clock at each call: a process that was stopped in between must not believe what it was told before. */
  get state(): LeaseState {
    const now = this.#now();
    if (now < this.#liveUntil) return "live";
    return now < this.#liveUntil + this.#options.graceMs ? "grace" : "lost";
  }

  get term(): number {
    return this.#term;
  }

  subscribe(listener: (state: LeaseState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Begins. Resolves after the first try, whether the directory answered or not. */
  async start(): Promise<void> {
    const wait = await this.#attempt(this.#closing.signal);
    this.#running ??= this.#keep(wait, this.#closing.signal);
  }

  /** Publishes the host's record soon, if it has changed. */
  async publish(): Promise<void> {
    if (this.#lease !== undefined) await this.#publish(this.#lease, this.#closing.signal);
  }

  /** Ends the lease, so that other hosts know at once that this one is away. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    await this.#running;
    this.#liveUntil = Number.NEGATIVE_INFINITY;
    await this.#lease?.revoke(AbortSignal.timeout(REVOKE_MS)).catch((error: unknown) => this.#options.onFault?.(error));
  }

  async #keep(first: number, signal: AbortSignal): Promise<void> {
    for (let wait = first; !signal.aborted; wait = await this.#attempt(signal))
      await delay(wait, undefined, { signal, ref: false }).catch(() => {}); // aborted: the loop ends
  }

  /** Returns after how many milliseconds the next one is due. */
  async #attempt(signal: AbortSignal): Promise<number> {
    try {
      await this.#renew(within(signal, this.#options.ttlMs / 2, "the renewal of this host's lease"));
      return this.#options.ttlMs * RENEW_AFTER;
    } catch (error) {
      if (error instanceof LeaseGone) this.#end();
      if (!signal.aborted) this.#options.onFault?.(error);
      return RETRY_MS;
    } finally {
      this.#tell();
    }
  }

  async #renew(signal: AbortSignal): Promise<void> {
    // The directory counts from when it gets the request, which is not before this.
    let begun = this.#now();
    if (this.#lease !== undefined && !(await this.#lease.renew(signal))) this.#end();
    // The host is published under it: a directory that takes no more writes does not make it lost.
    if (this.#lease !== undefined) this.#liveUntil = this.#endOf(begun, this.#lease);
    const isNew = this.#lease === undefined;
    if (isNew) begun = this.#now();
    const lease = this.#lease ?? (await this.#options.directory.lease(this.#options.ttlMs, signal));
    await this.#publish(lease, signal);
    this.#lease = lease;
    if (isNew) this.#term += 1;
    this.#liveUntil = this.#endOf(begun, lease);
  }

  #endOf(begun: number, { ttlMs }: Lease): number {
    return begun + ttlMs * (1 - CLOCK_MARGIN);
  }

  async #publish(lease: Lease, signal: AbortSignal): Promise<void> {
    const { directory, key, record, member } = this.#options;
    const value = JSON.stringify(record());
    if (lease === this.#lease && value === this.#published) return;
    const condition = await member(signal);
    const revision = await directory.transact([condition], [{ key, value, lease }], signal);
    if (revision === undefined) throw new Error("this host's member record was changed at the same time");
    this.#published = value;
  }

  /** The directory says that the lease is over. */
  #end(): void {
    this.#lease = undefined;
    this.#liveUntil = Math.min(this.#liveUntil, this.#now());
  }

  #tell(): void {
    clearTimeout(this.#timer);
    const { state } = this;
    if (!this.#closing.signal.aborted && state !== "lost") {
      const end = state === "live" ? this.#liveUntil : this.#liveUntil + this.#options.graceMs;
      this.#timer = setTimeout(() => this.#tell(), Math.max(1, Math.ceil(end - this.#now())));
      this.#timer.unref();
    }
    // A lease that ended and began again in one step is another one: what was read under the first must be read again.
    if (state === this.#told && this.#toldTerm === this.#term) return;
    this.#told = state;
    this.#toldTerm = this.#term;
    for (const listener of this.#listeners) listener(state);
  }
}
