/** The requests of one app that wait for a machine, in order of arrival. */
import { ProxyRefusal } from "./contract.ts";

export interface QueueLimits {
  /** How many requests of one app may wait at once: each holds a connection and its buffers. */
  maxHeld: number;
  /** How long each may wait, in milliseconds. */
  holdTimeoutMs: number;
}

interface Waiter {
  /** Returns true if the request was served or refused, and so has left the queue. */
  attempt(): boolean;
  reject(error: Error): void;
}

export class WaitingQueue<T> {
  readonly #app: string;
  readonly #limits: QueueLimits;
  readonly #hint: () => string;
  readonly #waiters = new Set<Waiter>();

  /** `hint` says what else is known when the time of a request is over: empty, or a sentence with a space before it. */
  constructor(app: string, limits: QueueLimits, hint: () => string = () => "") {
    this.#app = app;
    this.#limits = limits;
    this.#hint = hint;
  }

  get size(): number {
    return this.#waiters.size;
  }

  /**
   * Waits until `attempt`, which is given the time at which the wait began, returns something or throws. Throws a 503 if
   * the queue is full. Rejects with a 504 after the hold timeout, and with the signal's reason.
   */
  wait(since: number, signal: AbortSignal, attempt: (since: number) => T | undefined): Promise<T> {
    const { maxHeld, holdTimeoutMs } = this.#limits;
    if (this.#waiters.size >= maxHeld)
      throw new ProxyRefusal(503, "too_many_held", `${maxHeld} requests are already waiting for app ${this.#app}.`, {
        retryAfterS: 1,
      });
    return new Promise<T>((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
        this.#waiters.delete(waiter);
      };
      const waiter: Waiter = {
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
        const message = `No machine of app ${this.#app} was ready within ${holdTimeoutMs / 1000} s.${this.#hint()}`;
        waiter.reject(new ProxyRefusal(504, "wake_timeout", message));
      }, holdTimeoutMs);
      signal.addEventListener("abort", abort, { once: true });
      this.#waiters.add(waiter);
      if (signal.aborted) abort();
    });
  }

  /** Serves requests in order. The first one that has to keep waiting also keeps those behind it waiting. */
  serve(): void {
    for (const waiter of this.#waiters) if (!waiter.attempt()) return;
  }

  rejectAll(error: Error): void {
    for (const waiter of [...this.#waiters]) waiter.reject(error);
  }
}
