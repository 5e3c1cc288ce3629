/** Limits how many of something exist at once, in total and per client. */
export class Quota {
  readonly #limits: { total: number; perClient: number };
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(limits: { total: number; perClient: number }) {
    this.#limits = limits;
  }

  /** Takes one. False when none is left for this client. */
  take(client: string): boolean {
    const taken = this.#taken.get(client) ?? 0;
    if (this.#total >= this.#limits.total || taken >= this.#limits.perClient) return false;
    this.#total += 1;
    this.#taken.set(client, taken + 1);
    return true;
  }

  /** Gives back one that {@link take} took. */
  giveBack(client: string): void {
    const left = (this.#taken.get(client) ?? 1) - 1;
    this.#total -= 1;
    if (left === 0) this.#taken.delete(client);
    else this.#taken.set(client, left);
  }
}
