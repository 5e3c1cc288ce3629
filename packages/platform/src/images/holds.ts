/** Who is about to use what: something that is held is not removed, and something that is removed is not handed out. */

/** Holds by key, counted. All decisions are synchronous, so that none can come between another's look and its deed. */
export class Holds {
  readonly #held = new Map<string, number>();
  readonly #removing = new Map<string, Promise<void>>();

  /** Holds the key until the returned function is called, once a removal under way is over. */
  async take(key: string): Promise<() => void> {
    this.#held.set(key, (this.#held.get(key) ?? 0) + 1);
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      const left = (this.#held.get(key) ?? 1) - 1;
      if (left > 0) this.#held.set(key, left);
      else this.#held.delete(key);
    };
    await this.#removing.get(key)?.catch(() => {});
    return release;
  }

  /** Runs `work`, which removes what the key stands for, unless it is held. Says whether it was run. */
  async remove(key: string, work: () => Promise<void>): Promise<boolean> {
    if (this.#held.has(key) || this.#removing.has(key)) return false;
    const removing = work().finally(() => this.#removing.delete(key));
    this.#removing.set(key, removing);
    await removing;
    return true;
  }
}
