/**
 * The requests of one app that wait for a machine, in order of arrival. Those that ask for a certain machine, and those for
 * each TCP port, wait in a lane of their own: they neither hold up the others nor wait for them.
 */
import { ProxyRefusal } from "./contract.ts";

export interface QueueLimits {
  /** How many requests of one app may wait at once: each holds a connection and its buffers. */
  maxHeld: number;
  /** How long each may wait, in milliseconds. */
  holdTimeoutMs: number;
}

/** What a request waits for: a machine, by its id; a TCP port, by its number; or any machine. */
export type Lane = string | number | undefined;

/** A request that begins to wait. */
export interface Wait<T> {
  /** When it began to wait, or came, if a machine was given it in vain. On the clock of the caller. */
  since: number;
  /** What it waits for. */
  lane: Lane;
  signal: AbortSignal;
  /** Is given `since`. Returns undefined if the request has to keep waiting, and throws if that would be in vain. */
  attempt(since: number): T | undefined;
}

interface Waiter {
  readonly lane: Lane;
  /** Returns true if the request was served or refused, and so has left the queue. */
  attempt(): boolean;
  reject(error: Error): void;
}

export class WaitingQueue<T> {
  readonly #app: string;
  readonly #limits: QueueLimits;
  readonly #hint: () => string;
  readonly #waiters = new Set<Waiter>();
  /** How many requests wait in each lane. */
  readonly #lanes = new Map<Lane, number>();

  /** `hint` says what else is known when the time of a request is over: empty, or a sentence with a space before it. */
  constructor(app: string, limits: QueueLimits, hint: () => string) {
    this.#app = app;
    this.#limits = limits;
    this.#hint = hint;
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** How many requests wait in this lane. */
  sizeOf(lane: Lane): number {
    return this.#lanes.get(lane) ?? 0;
  }

  /**
   * Waits until `attempt` returns something or throws. Throws a 503 if the queue is full. Rejects with a 504 after the
   * hold timeout, and with the signal's reason.
   */
  wait({ since, lane, signal, attempt }: Wait<T>): Promise<T> {
    const { maxHeld, holdTimeoutMs } = this.#limits;
    if (this.#waiters.size >= maxHeld)
      throw new ProxyRefusal(503, "too_many_held", `${maxHeld} requests are already waiting for app ${this.#app}.`, {
        retryAfterS: 1,
      });
    return new Promise<T>((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
        if (this.#waiters.delete(waiter)) this.#count(lane, -1);
      };
      const waiter: Waiter = {
        lane,
        attempt: () => {
          try {
            const value = attempt(since);
            if (value === undefined) return false;
            leave();
            resolve(value);
          } catch (error) {
            waiter.reject(error as Error);
          }
          return true;
        },
        reject: (error) => {
          leave();
          reject(error);
        },
      };
      const abort = () => waiter.reject(signal.reason as Error);
      const timer = setTimeout(() => {
        const within = `ready within ${holdTimeoutMs / 1000} s.`;
        const message =
          typeof lane !== "string"
            ? `No machine of app ${this.#app} was ${within}${this.#hint()}`
            : `Machine ${lane} of app ${this.#app} was not ${within} See: hibernaut machine status ${lane} --app ${this.#app}`;
        waiter.reject(new ProxyRefusal(504, "wake_timeout", message));
      }, holdTimeoutMs);
      signal.addEventListener("abort", abort, { once: true });
      this.#waiters.add(waiter);
      this.#count(lane, 1);
      if (signal.aborted) abort();
    });
  }

  /** Serves requests in order. The first one that has to keep waiting also keeps those behind it in its lane waiting. */
  serve(): void {
    const blocked = new Set<Lane>();
    for (const waiter of this.#waiters) {
      if (blocked.has(waiter.lane) || waiter.attempt()) continue;
      blocked.add(waiter.lane);
      if (blocked.size === this.#lanes.size) return;
    }
  }

  rejectAll(error: Error): void {
    for (const waiter of [...this.#waiters]) waiter.reject(error);
  }

  #count(lane: Lane, change: 1 | -1): void {
    const size = this.sizeOf(lane) + change;
    if (size === 0) this.#lanes.delete(lane);
    else this.#lanes.set(lane, size);
  }
}
