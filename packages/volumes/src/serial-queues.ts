/** Serializes work by name. */
import { abortable } from "@hibernaut/lib/async";

/** One queue for each name: its work runs one at a time, first come, first served. */
export class SerialQueues {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs `work` after all work that was queued under this name before. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
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

  /** Resolves when the name's queue is empty. Rejects with the signal's reason when it is aborted first. */
  async idle(name: string, signal: AbortSignal): Promise<void> {
    for (let last = this.#last.get(name); last !== undefined; last = this.#last.get(name))
      await abortable(last, signal);
  }
}
