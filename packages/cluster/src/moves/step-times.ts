/** How long the steps of a move took. */

export class StepTimes<Step extends string> {
  readonly #ms: Partial<Record<Step, number>> = {};
  #current: Step | undefined;
  #since = performance.now();

  /** A step begins, which ends the one before. Nothing if it is the same one. */
  begin(step: Step): void {
    if (step === this.#current) return;
    this.#end();
    this.#current = step;
  }

  /** Ends the last step. Returns all of them in whole milliseconds, in the order in which they began. */
  done(): Partial<Record<Step, number>> {
    this.#end();
    this.#current = undefined;
    return this.#ms;
  }

  #end(): void {
    const now = performance.now();
    const step = this.#current;
    if (step !== undefined) this.#ms[step] = (this.#ms[step] ?? 0) + Math.round(now - this.#since);
    this.#since = now;
  }
}
