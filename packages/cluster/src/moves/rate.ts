/** How fast machines and templates may leave this host, all together. */
import { setTimeout as delay } from "node:timers/promises";

const BYTES_PER_MB = 1024 * 1024;

export class Rate {
  readonly #bytesPerMs: number;
  /** When what was taken so far is over, on the clock of `performance.now()`. */
  #until = 0;

  /** 0 MB per second: as fast as possible. */
  constructor(mbPerSecond: number) {
    this.#bytesPerMs = (mbPerSecond * BYTES_PER_MB) / 1000;
  }

  /** Resolves when this many bytes may be sent. Rejects with the signal's reason. */
  async take(bytes: number, signal: AbortSignal): Promise<void> {
    if (this.#bytesPerMs === 0) return;
    const now = performance.now();
    const begin = Math.max(now, this.#until);
    this.#until = begin + bytes / this.#bytesPerMs;
    if (begin > now) await delay(begin - now, undefined, { signal });
  }
}
