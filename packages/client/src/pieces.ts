/** Cuts a blob into requests: large enough that a fast network is used well, small enough for a slow one. */

/** The first request. Few networks need longer than 10 s for it. */
const FIRST_BYTES = 1024 * 1024;
const LEAST_BYTES = 64 * 1024;
/** Larger requests are not faster. */
const MOST_BYTES = 64 * 1024 * 1024;
/** The platform takes no request for longer than 30 s. */
const SLOW_MS = 8000;
const QUICK_MS = 2000;

/** The size of the next request, in bytes, after one of that size took so long. Pure. */
export function nextSize(size: number, tookMs: number, most = MOST_BYTES): number {
  if (tookMs > SLOW_MS) return Math.max(LEAST_BYTES, Math.floor(size / 2));
  return tookMs < QUICK_MS ? Math.min(most, size * 2) : size;
}

/** The rest of one blob, piece by piece, read once from its source for as long as nothing fails. */
export class Pieces implements AsyncDisposable {
  readonly #open: (offset: number) => AsyncIterable<Uint8Array>;
  #size = FIRST_BYTES;
  #most = MOST_BYTES;
  #begunMs = 0;
  #reader: AsyncIterator<Uint8Array> | undefined;
  /** What was read and belongs to the next piece. */
  #rest: Uint8Array | undefined;
  /** What the source failed with. Requests hide it behind an error of their own. */
  fault: unknown;

  constructor(open: (offset: number) => AsyncIterable<Uint8Array>) {
    this.#open = open;
  }

  /** Yields the next bytes, up to the size of a piece. `onBytes` is called with how many have been yielded so far. */
  async *next(offset: number, onBytes: (count: number) => void): AsyncGenerator<Uint8Array, void> {
    this.#begunMs = performance.now();
    for (let sent = 0; sent < this.#size; ) {
      const chunk = this.#rest ?? (await this.#read(offset));
      this.#rest = undefined;
      if (chunk === undefined) return;
      const now = chunk.subarray(0, this.#size - sent);
      if (now.length < chunk.length) this.#rest = chunk.subarray(now.length);
      sent += now.length;
      yield now;
      onBytes(sent);
    }
  }

  /** The piece has arrived: the next one may be of another size. */
  succeeded(): void {
    this.#size = nextSize(this.#size, performance.now() - this.#begunMs, this.#most);
  }

  /** Halves the size for good. False when it is as small as it gets. */
  smaller(): boolean {
    if (this.#size <= LEAST_BYTES) return false;
    this.#size = Math.max(LEAST_BYTES, Math.floor(this.#size / 2));
    this.#most = this.#size;
    return true;
  }

  /** Reads from the source again, from the offset of the next piece. */
  async restart(): Promise<void> {
    this.#rest = undefined;
    const reader = this.#reader;
    this.#reader = undefined;
    this.#size = Math.min(this.#size, FIRST_BYTES);
    await reader?.return?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.restart();
  }

  async #read(offset: number): Promise<Uint8Array | undefined> {
    try {
      this.#reader ??= this.#open(offset)[Symbol.asyncIterator]();
      const next = await this.#reader.next();
      return next.done ? undefined : next.value;
    } catch (error) {
      this.fault = error;
      throw error;
    }
  }
}
