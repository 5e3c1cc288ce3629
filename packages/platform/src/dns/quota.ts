/** How many of something there may be at once, in all and for each client. */
export class Quota {
  readonly #most: { all: number; each: number };
  readonly #taken = new Map<string, number>();
  #all = 0;

  constructor(most: { all: number; each: number }) {
    this.#most = most;
  }

  /** Takes one, or says that there is none left for this client. */
  take(client: string): boolean {
    const taken = this.#taken.get(client) ?? 0;
    if (this.#all >= this.#most.all || taken >= this.#most.each) return false;
    this.#all += 1;
    this.#taken.set(client, taken + 1);
    return true;
  }

  giveBack(client: string): void {
    const left = (this.#taken.get(client) ?? 1) - 1;
    this.#all -= 1;
    if (left === 0) this.#taken.delete(client);
    else this.#taken.set(client, left);
  }
}
