/** Lines that a guest causes in the platform's log: the first at once, and from then on one for each while. */

/** How often such a line is written at most, in milliseconds. A guest that works causes a few in its life. */
export const SELDOM_MS = 10_000;

export class SeldomLog {
  readonly #write: (fields: { message: string; omitted?: number }) => void;
  readonly #now: () => number;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #omitted = 0;

  /**
   * @param write writes one line; `omitted` says how many there were since the last one
   * @param now milliseconds of a steady clock
   */
  constructor(write: (fields: { message: string; omitted?: number }) => void, now = () => performance.now()) {
    this.#write = write;
    this.#now = now;
  }

  /** Writes the line, or counts it. */
  add(message: string): void {
    if (this.#now() - this.#writtenAt < SELDOM_MS) {
      this.#omitted += 1;
      return;
    }
    this.#write({ message, ...(this.#omitted > 0 && { omitted: this.#omitted }) });
    this.#writtenAt = this.#now();
    this.#omitted = 0;
  }
}
