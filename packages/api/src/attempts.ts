/** Counts attempts that failed, by where they came from, and says when someone has to wait. */

/** Attempts that may fail within {@link WINDOW_MS}: more than people need who paste the wrong thing. */
export const MAX_FAILED = 10;
/** In milliseconds. */
const WINDOW_MS = 60_000;
/** Addresses remembered. The one that failed longest ago is forgotten first. */
const MAX_ADDRESSES = 10_000;

/** Failed attempts of a minute. */
export class FailedAttempts {
  readonly #now: () => number;
  readonly #failed = new Map<string, { count: number; until: number }>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** How long an address has to wait, in milliseconds; 0 if it need not. */
  waitMs(address: string): number {
    const known = this.#failed.get(address);
    return known === undefined || known.count < MAX_FAILED ? 0 : Math.max(0, known.until - this.#now());
  }

  /** An attempt from an address failed. */
  failed(address: string): void {
    const known = this.#failed.get(address);
    const now = this.#now();
    const next = known === undefined || known.until <= now ? { count: 0, until: now + WINDOW_MS } : known;
    this.#failed.delete(address);
    this.#failed.set(address, { ...next, count: next.count + 1 });
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > MAX_ADDRESSES && oldest !== undefined) this.#failed.delete(oldest);
  }
}
