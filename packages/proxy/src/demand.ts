/** How many machines an app has needed lately. */

/**
 * Remembers for each number of machines when an app last needed that many. A burst is over at once, but it would be a
 * waste to put machines to sleep between two of them.
 */
export class Demand {
  /** At index n: when at least n + 1 machines were last needed, in milliseconds of a steady clock. Never increases. */
  readonly #neededAt: number[] = [];

  /** Notes that the app needs this many machines now. */
  note(machines: number, now: number): void {
    for (let index = 0; index < machines; index += 1) this.#neededAt[index] = now;
  }

  /** Returns the most machines that were needed at once in the last `withinMs` milliseconds. */
  lately(withinMs: number, now: number): number {
    const over = this.#neededAt.findIndex((at) => now - at >= withinMs);
    return over === -1 ? this.#neededAt.length : over;
  }

  /** Returns in how many milliseconds {@link lately} will be less; Infinity if it is zero. */
  untilLessMs(withinMs: number, now: number): number {
    const last = this.#neededAt[this.lately(withinMs, now) - 1];
    return last === undefined ? Number.POSITIVE_INFINITY : last + withinMs - now;
  }
}
