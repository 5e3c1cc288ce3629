/** How many pieces of heavy work go on at once; the others wait their turn, first come, first served. */
import { abortable } from "../lib/async.ts";

export class Slots {
  #free: number;
  readonly #waiting: PromiseWithResolvers<void>[] = [];

  constructor(count: number) {
    this.#free = count;
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
      // Its turn came in the same moment as the abort: the slot is passed on.
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
