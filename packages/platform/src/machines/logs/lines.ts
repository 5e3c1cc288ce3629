/** Cuts what a program prints into lines. */

/** The longest line, in bytes; what is longer goes on in the next one. A program may never end a line. */
export const MAX_LINE_BYTES = 16_384;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * The lines of one output. However its bytes come in pieces, the lines are the same. UTF-8 is kept together; bytes
 * that are none become U+FFFD.
 *
 * @example
 * const lines = new LineCutter();
 * for (const line of lines.push(chunk)) show(line);
 * for (const line of lines.flush()) show(line); // at the end, or when the rest has been awaited long enough
 */
export class LineCutter {
  #held: Buffer = Buffer.alloc(0);
  /** What is held is the rest of a line of which the beginning was given away. */
  #continues = false;

  /** Bytes that wait for the end of their line: never more than {@link MAX_LINE_BYTES}. */
  get held(): number {
    return this.#held.length;
  }

  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    for (;;) {
      const end = bytes.indexOf(LINE_FEED);
      if (end !== -1 && end <= MAX_LINE_BYTES) {
        this.#end(bytes.subarray(0, end), lines);
        bytes = bytes.subarray(end + 1);
      } else if (bytes.length > MAX_LINE_BYTES) {
        const cut = boundary(bytes, MAX_LINE_BYTES);
        lines.push(bytes.toString("utf8", 0, cut));
        bytes = bytes.subarray(cut);
        this.#continues = true;
      } else break;
    }
    // A copy, because a small rest would keep the whole chunk in memory.
    this.#held = Buffer.from(bytes);
    return lines;
  }

  /** What there is of a line that has not ended. What comes after is another line. */
  flush(): string[] {
    const lines: string[] = [];
    if (this.#held.length === 0) return lines;
    this.#end(this.#held, lines);
    this.#held = Buffer.alloc(0);
    this.#continues = true;
    return lines;
  }

  #end(bytes: Buffer, lines: string[]): void {
    const length = bytes.at(-1) === CARRIAGE_RETURN ? bytes.length - 1 : bytes.length;
    // A line that was as long as a piece, or ended by a flush, has nothing left.
    if (length > 0 || !this.#continues) lines.push(bytes.toString("utf8", 0, length));
    this.#continues = false;
  }
}

/** The last place up to `at` at which no UTF-8 sequence is cut; `at` itself where the bytes are no UTF-8. */
function boundary(bytes: Buffer, at: number): number {
  for (let start = at; start > at - 4; start -= 1) {
    const isContinuation = ((bytes[start] ?? 0) & 0b1100_0000) === 0b1000_0000;
    if (!isContinuation) return start;
  }
  return at;
}
