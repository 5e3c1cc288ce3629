/**
 * What a machine's log takes of what the app prints. A line costs the platform much more than the app: unlimited, one app
 * could keep it from everything else. What is over the rate is left out before it is cut into lines, which costs next
 * to nothing. The guest is read nevertheless: what else it says must not wait behind lines that nobody wants.
 */
import { type Rate, TokenBucket } from "@hibernaut/lib/token-bucket";
import { LINE_FEED } from "./lines.ts";

export interface LogRate {
  bytesPerS: number;
  linesPerS: number;
}

/** How many seconds' worth may come at once: what an app prints when it starts, or a long error, is kept whole. */
const BURST_S = 5;

const rateOf = (perSecond: number): Rate => ({ perSecond, burst: perSecond * BURST_S });

export class LogAllowance {
  readonly rate: LogRate;
  readonly #bytes: TokenBucket;
  readonly #lines: TokenBucket;

  constructor(rate: LogRate, now?: () => number) {
    this.rate = rate;
    this.#bytes = new TokenBucket(rateOf(rate.bytesPerS), now);
    this.#lines = new TokenBucket(rateOf(rate.linesPerS), now);
  }

  /** Whether there is room for another line. */
  get open(): boolean {
    return this.#bytes.left >= 1 && this.#lines.left >= 1;
  }

  /** How many bytes of these may be taken: all, or those up to the end of the last line that there is room for. */
  room(bytes: Buffer): number {
    if (!this.open) return 0;
    let lines = Math.floor(this.#lines.left);
    if (bytes.length <= lines) return bytes.length;
    let end = 0;
    for (; lines > 0; lines -= 1) {
      const next = bytes.indexOf(LINE_FEED, end);
      if (next === -1) return bytes.length;
      end = next + 1;
    }
    return end;
  }

  /** Counts what was taken. */
  took({ bytes = 0, lines = 0 }: { bytes?: number; lines?: number }): void {
    this.#bytes.take(bytes);
    this.#lines.take(lines);
  }
}
