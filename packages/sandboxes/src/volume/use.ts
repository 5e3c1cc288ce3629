/** Who uses something that ends when nobody has used it for a while. */
import { setTimeout as delay } from "node:timers/promises";

export class Use {
  readonly #idleMs: number;
  readonly #onIdle: () => void;
  #users = 0;
  #timer: NodeJS.Timeout | undefined;
  #gone = Promise.withResolvers<void>();
  #closed = false;

  constructor(idleMs: number, onIdle: () => void) {
    this.#idleMs = idleMs;
    this.#onIdle = onIdle;
    this.#gone.resolve();
  }

  /** Returns a function that ends this use; more calls of it do nothing. */
  enter(): () => void {
    clearTimeout(this.#timer);
    if (this.#users === 0) this.#gone = Promise.withResolvers();
    this.#users += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#users -= 1;
      if (this.#users > 0) return;
      this.#gone.resolve();
      if (!this.#closed) this.#timer = setTimeout(this.#onIdle, this.#idleMs).unref();
    };
  }

  /** Waits until nobody uses it. False when that takes longer than this, in milliseconds. */
  async over(timeoutMs: number): Promise<boolean> {
    const late = new AbortController();
    const timeout = delay(timeoutMs, false, { signal: late.signal }).catch(() => false);
    const isOver = await Promise.race([this.#gone.promise.then(() => true), timeout]);
    late.abort();
    return isOver;
  }

  /** It does not end by itself any more. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }
}
