/** Divides a number of places among those who ask, so that there is always one for another. */

export class Shares {
  readonly #most: number;
  #taken = 0;
  /** Only those that have some. */
  readonly #of = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Whether half of all are free: what is only kept for later may take a place. */
  get ample(): boolean {
    return this.#taken * 2 <= this.#most;
  }

  /** Takes a place. Returns false if the one who asks has as many as are left for others. */
  take(who: string): boolean {
    const own = this.#of.get(who) ?? 0;
    if (own >= this.#most - this.#taken) return false;
    this.#taken += 1;
    this.#of.set(who, own + 1);
    return true;
  }

  give(who: string): void {
    const left = (this.#of.get(who) ?? 0) - 1;
    this.#taken -= 1;
    if (left > 0) this.#of.set(who, left);
    else this.#of.delete(who);
  }
}
