/** A stream of chunks, read in the portions that a reader asks for. */
import { damaged } from "./refusal.ts";

export class Bytes {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Returns what is there, up to `most` bytes. Empty at the end. */
  async some(most: number): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next();
      if (next.done === true) return this.#rest;
      this.#rest = next.value;
    }
    const found = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(found.length);
    return found;
  }

  /** Returns exactly this many bytes; undefined at the end. Rejects when the end comes in between. */
  async exactly(count: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    for (let missing = count; missing > 0; ) {
      const part = await this.some(missing);
      if (part.length === 0 && missing === count) return undefined;
      if (part.length === 0) throw damaged("a layer ends in the middle of an entry");
      parts.push(part);
      missing -= part.length;
    }
    const [first = Buffer.alloc(0)] = parts;
    return parts.length === 1 ? first : Buffer.concat(parts);
  }

  /** Reads exactly this many bytes, and gives them to `take`. Rejects when there are fewer. */
  async each(count: number, take: (part: Buffer) => void | Promise<void>): Promise<void> {
    for (let missing = count; missing > 0; ) {
      const part = await this.some(missing);
      if (part.length === 0) throw damaged("a layer ends in the middle of a file");
      await take(part);
      missing -= part.length;
    }
  }

  /** Passes over this many bytes, or to the end if it comes before. */
  async skip(count: number): Promise<void> {
    for (let missing = count; missing > 0; ) {
      const part = await this.some(missing);
      if (part.length === 0) return;
      missing -= part.length;
    }
  }
}
