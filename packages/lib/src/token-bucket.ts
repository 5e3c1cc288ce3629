/** A rate with room for bursts. It may be overdrawn: what was used already cannot be refused, only what comes next. */

export interface Rate {
  perSecond: number;
  /** How much may be used at once after a rest. */
  burst: number;
}

export class TokenBucket {
  readonly #rate: Rate;
  readonly #now: () => number;
  #tokens: number;
  #at: number;

  /** @param now milliseconds of a steady clock */
  constructor(rate: Rate, now = () => performance.now()) {
    this.#rate = rate;
    this.#now = now;
    this.#tokens = rate.burst;
    this.#at = now();
  }

  /** What may be used now; less than 0 when more was used than there was. */
  get left(): number {
    const now = this.#now();
    const gained = ((now - this.#at) / 1000) * this.#rate.perSecond;
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + gained);
    this.#at = now;
    return this.#tokens;
  }

  take(amount: number): void {
    this.#tokens = this.left - amount;
  }

  /** In how many milliseconds nothing is overdrawn any more. */
  get waitMs(): number {
    const { left } = this;
    return left >= 0 ? 0 : Math.ceil((-left / this.#rate.perSecond) * 1000);
  }
}
