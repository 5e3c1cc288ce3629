/** Limits how much heavy work is done at a time; the rest waits its turn, first come, first served. */
import { abortable } from "./async.ts";

export class Semaphore {
  #free: number;
  readonly #waiting: PromiseWithResolvers<void>[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** How much work waits for a slot. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs `work` as soon as a slot is free. Rejects with the signal's reason when it is aborted while waiting. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#take(signal);
    try {
      return await work();
    } finally {
      this.#give();
    }
  }

  async #take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const turn = Promise.withResolvers<void>();
    this.#waiting.push(turn);
    try {
      await abortable(turn.promise, signal);
    } catch (error) {
      const place = this.#waiting.indexOf(turn);
      // The turn came at the same moment as the abort: pass the slot on.
      if (place === -1) this.#give();
      else this.#waiting.splice(place, 1);
      throw error;
    }
  }

  #give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next.resolve();
  }
}
