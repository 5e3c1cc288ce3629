/** One piece of work at a time on each thing that has a name, first come, first served. */
import { abortable } from "../lib/async.ts";

export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** Does `work` after all that was asked for before it. */
  async take<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last.set(name, promise);
    await before;
    try {
      return await work();
    } finally {
      if (this.#last.get(name) === promise) this.#last.delete(name);
      resolve();
    }
  }

  /** Settles when nothing is under way. Rejects with the signal's reason when it is aborted first. */
  async idle(name: string, signal: AbortSignal): Promise<void> {
    for (let last = this.#last.get(name); last !== undefined; last = this.#last.get(name))
      await abortable(last, signal);
  }
}
