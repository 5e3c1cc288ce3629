/** Cuts what a program prints into lines. */

/** The longest line, in bytes. The rest of a longer line becomes the next one: a program may never end a line. */
export const MAX_LINE_BYTES = 16_384;

export const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Cuts one output into lines, which do not depend on how its bytes are split into chunks. UTF-8 sequences stay whole;
 * bytes that are not UTF-8 become U+FFFD.
 *
 * @example
 * const lines = new LineCutter();
 * for (const line of lines.push(chunk)) show(line);
 * for (const line of lines.flush()) show(line); // at the end, or after waiting long enough for the rest
 */
export class LineCutter {
  #held: Buffer = Buffer.alloc(0);
  /** Whether the held bytes continue a line whose beginning was already returned. */
  #continues = false;

  /** Bytes that wait for the end of their line, at most {@link MAX_LINE_BYTES}. */
  get held(): number {
    return this.#held.length;
  }

  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    let at = 0;
    for (;;) {
      const end = bytes.indexOf(LINE_FEED, at);
      if (end !== -1 && end - at <= MAX_LINE_BYTES) {
        this.#end(bytes, at, end, lines);
        at = end + 1;
      } else if (bytes.length - at > MAX_LINE_BYTES) {
        const cut = boundary(bytes, at + MAX_LINE_BYTES);
        lines.push(bytes.toString("utf8", at, cut));
        at = cut;
        this.#continues = true;
      } else break;
    }
    // A copy, because a small rest would keep the whole chunk in memory.
    this.#held = Buffer.from(bytes.subarray(at));
    return lines;
  }

  /** Returns the beginning of a line that has not ended. What follows is another line. */
  flush(): string[] {
    const lines: string[] = [];
    if (this.#held.length === 0) return lines;
    this.#end(this.#held, 0, this.#held.length, lines);
    this.#held = Buffer.alloc(0);
    this.#continues = true;
    return lines;
  }

  #end(bytes: Buffer, begin: number, lineEnd: number, lines: string[]): void {
    const end = lineEnd > begin && bytes[lineEnd - 1] === CARRIAGE_RETURN ? lineEnd - 1 : lineEnd;
    // Nothing is left of a line that was exactly one piece long, or that a flush ended.
    if (end > begin || !this.#continues) lines.push(bytes.toString("utf8", begin, end));
    this.#continues = false;
  }
}

/** The last position up to `at` that does not split a UTF-8 sequence; `at` itself if the bytes are not UTF-8. */
function boundary(bytes: Buffer, at: number): number {
  for (let start = at; start > at - 4; start -= 1) {
    const isContinuation = ((bytes[start] ?? 0) & 0b1100_0000) === 0b1000_0000;
    if (!isContinuation) return start;
  }
  return at;
}
