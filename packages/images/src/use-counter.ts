/** Counts uses, so that nothing in use is removed and nothing that is being removed is handed out. */

/** Uses by key. Decisions are synchronous, so that nothing happens between a check and what follows from it. */
export class UseCounter {
  readonly #uses = new Map<string, number>();
  readonly #removing = new Map<string, Promise<void>>();

  /** Counts a use until the returned function is called. Waits for a removal in progress. */
  async use(key: string): Promise<() => void> {
    this.#uses.set(key, (this.#uses.get(key) ?? 0) + 1);
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      const left = (this.#uses.get(key) ?? 1) - 1;
      if (left > 0) this.#uses.set(key, left);
      else this.#uses.delete(key);
    };
    await this.#removing.get(key)?.catch(() => {});
    return release;
  }

  /** Runs `work`, which removes what the key stands for, unless it is in use. Returns whether `work` was run. */
  async removeUnused(key: string, work: () => Promise<void>): Promise<boolean> {
    if (this.#uses.has(key) || this.#removing.has(key)) return false;
    const removing = work().finally(() => this.#removing.delete(key));
    this.#removing.set(key, removing);
    await removing;
    return true;
  }
}
