/** Finds the end of a head, or of a trailer section, in a stream of bytes, and refuses suspicious bytes. */
import { Malformed, TooLarge } from "./grammar.ts";

const CR = 0x0d;
const LF = 0x0a;
/** Bytes that a head contains only at the end of a line: control characters except tab (RFC 9110 5.5). */
const CONTROL = new Uint8Array(256);
for (let byte = 0; byte < 0x20; byte += 1) CONTROL[byte] = byte === 0x09 ? 0 : 1;
CONTROL[0x7f] = 1;

/** What the next byte belongs to. */
const Place = { lineStart: 0, inLine: 1, endOfLine: 2, endOfHead: 3 } as const;

/**
 * Reads lines up to an empty one. Each must end in CR LF: RFC 9112 2.2 lets a recipient accept a bare LF, but the app
 * might then see different lines than the proxy does.
 *
 * @example
 * const end = reader.read(chunk, 0);
 * if (end !== -1) parse(reader.take());
 */
export class HeadReader {
  readonly #limit: number;
  /** Pieces of a head that did not arrive at once, and their length. */
  #parts: Buffer[] = [];
  #length = 0;
  #place: number = Place.lineStart;
  #text = "";

  /** @param limit the most bytes of a head */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether a head has begun and is not complete. */
  get begun(): boolean {
    return this.#length > 0;
  }

  /** Whether the first line is still incomplete, which decides what to call too long. */
  get inFirstLine(): boolean {
    return !this.#parts.some((part) => part.includes(LF));
  }

  /** Reads from `from`. Returns the index after the head's last byte, or -1 if more bytes are needed. */
  read(chunk: Buffer, from: number): number {
    const room = this.#limit - this.#length;
    const to = Math.min(chunk.length, from + room);
    const end = this.#scan(chunk, from, to);
    if (end === -1) {
      // Copied, because the chunk's memory may be used again.
      this.#parts.push(Buffer.from(chunk.subarray(from, to)));
      this.#length += to - from;
      if (to < chunk.length || this.#length >= this.#limit)
        throw new TooLarge(this.inFirstLine ? "target" : "head", `A head may have up to ${this.#limit} bytes.`);
      return -1;
    }
    if (this.#parts.length === 0) this.#text = chunk.toString("latin1", from, end - 2);
    else {
      this.#parts.push(chunk.subarray(from, end));
      const whole = Buffer.concat(this.#parts);
      this.#text = whole.toString("latin1", 0, whole.length - 2);
    }
    return end;
  }

  /** Returns the head's lines, each with its CR LF, without the empty one. The reader is then ready for the next head. */
  take(): string {
    const text = this.#text;
    this.#text = "";
    this.#parts = [];
    this.#length = 0;
    this.#place = Place.lineStart;
    return text;
  }

  #scan(chunk: Buffer, from: number, to: number): number {
    let place = this.#place;
    for (let at = from; at < to; at += 1) {
      const byte = chunk[at] as number;
      if (place >= Place.endOfLine) {
        if (byte !== LF) throw new Malformed("A CR in a head must be followed by an LF.");
        if (place === Place.endOfHead) return at + 1;
        place = Place.lineStart;
      } else if (byte === CR) {
        place = place === Place.lineStart ? Place.endOfHead : Place.endOfLine;
      } else if (CONTROL[byte] === 1) {
        throw new Malformed(
          byte === LF ? "A line of a head must end in CR LF." : "A head must not contain control characters.",
        );
      } else place = Place.inLine;
    }
    this.#place = place;
    return -1;
  }
}
