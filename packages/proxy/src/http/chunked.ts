/** The chunked transfer coding: decodes and encodes it (RFC 9112 7.1). */
import type { Field } from "../contract.ts";
import type { BodyReader, BodySink } from "./body-reader.ts";
import { parseFields } from "./fields.ts";
import { Malformed, TooLarge } from "./grammar.ts";
import { HeadReader } from "./head-reader.ts";
import type { Limits } from "./limits.ts";

const CR = 0x0d;
const LF = 0x0a;
const SEMICOLON = 0x3b;
/** The most digits of a size: twelve are 256 TB, which a number holds exactly. */
const MOST_DIGITS = 12;
/** The most bytes of extensions to one chunk. They are hardly used, except to keep a server busy. */
const MOST_EXTENSION = 256;
/** `;name`, `;name=token` or `;name="text"`, without the whitespace that RFC 9112 7.1.1 calls bad. */
const EXTENSION = /^(?:;[\w!#$%&'*+.^`|~-]+(?:=(?:[\w!#$%&'*+.^`|~-]+|"(?:[^"\\\x7f]|\\[^\x7f])*"))?)+$/;
/** Pieces up to this are copied next to their size line; larger ones are written as they are. */
const COPY_UP_TO = 4096;

const HEX = new Int8Array(256).fill(-1);
for (const digit of "0123456789abcdefABCDEF") HEX[digit.charCodeAt(0)] = Number.parseInt(digit, 16);

/** What the next byte belongs to. */
const Place = { size: 0, extension: 1, sizeLf: 2, data: 3, dataCr: 4, dataLf: 5, trailers: 6, done: 7 } as const;

/** Decodes chunks. Extensions are dropped, trailers are kept. */
export class ChunkedReader implements BodyReader {
  readonly #limits: Pick<Limits, "headBytes" | "headFields">;
  readonly #trailers: HeadReader;
  #place: number = Place.size;
  #digits = 0;
  #extension = "";
  /** The size as far as it was read, and then what is left of the chunk's data. */
  #left = 0;
  trailers: readonly Field[] = [];

  constructor(limits: Pick<Limits, "headBytes" | "headFields">) {
    this.#limits = limits;
    this.#trailers = new HeadReader(limits.headBytes);
  }

  get done(): boolean {
    return this.#place === Place.done;
  }

  read(chunk: Buffer, from: number, sink: BodySink): number {
    let at = from;
    while (at < chunk.length && this.#place !== Place.done) {
      if (this.#place === Place.data) {
        const end = Math.min(chunk.length, at + this.#left);
        this.#left -= end - at;
        if (this.#left === 0) this.#place = Place.dataCr;
        sink.data(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end));
        at = end;
      } else if (this.#place === Place.trailers) {
        const end = this.#trailers.read(chunk, at);
        if (end === -1) return chunk.length;
        this.trailers = parseFields(this.#trailers.take(), 0, this.#limits.headFields);
        this.#place = Place.done;
        at = end;
      } else {
        this.#line(chunk[at] as number);
        at += 1;
      }
    }
    return at;
  }

  /** Reads one byte of what is between the data. */
  #line(byte: number): void {
    switch (this.#place) {
      case Place.size:
        this.#size(byte);
        break;
      case Place.extension:
        if (byte === CR) this.#endExtension();
        else if (byte < 0x20 && byte !== 0x09)
          throw new Malformed("A chunk extension must not contain control characters.");
        else this.#extension += String.fromCharCode(byte);
        if (this.#extension.length > MOST_EXTENSION)
          throw new TooLarge("head", "The extensions of a chunk are too long.");
        break;
      case Place.sizeLf:
        expectByte(byte, LF);
        this.#place = this.#left === 0 ? Place.trailers : Place.data;
        break;
      case Place.dataCr:
        expectByte(byte, CR);
        this.#place = Place.dataLf;
        break;
      default:
        expectByte(byte, LF);
        this.#place = Place.size;
        this.#digits = 0;
        this.#extension = "";
    }
  }

  #size(byte: number): void {
    const digit = HEX[byte] ?? -1;
    if (digit >= 0) {
      this.#digits += 1;
      if (this.#digits > MOST_DIGITS) throw new Malformed(`A chunk size may have up to ${MOST_DIGITS} digits.`);
      this.#left = this.#left * 16 + digit;
    } else if (this.#digits > 0 && byte === CR) this.#place = Place.sizeLf;
    else if (this.#digits > 0 && byte === SEMICOLON) {
      this.#extension = ";";
      this.#place = Place.extension;
    } else throw new Malformed("A chunk must begin with its size in hexadecimal digits.");
  }

  #endExtension(): void {
    if (!EXTENSION.test(this.#extension))
      throw new Malformed("A chunk extension must be a name, with or without a value.");
    this.#place = Place.sizeLf;
  }
}

function expectByte(byte: number, wanted: number): void {
  if (byte !== wanted) throw new Malformed("A chunk, and the line with its size, must end in CR LF.");
}

/** Where encoded pieces are sent. */
interface Destination {
  push(part: string | Buffer): boolean;
}

/** Writes `piece` as one chunk. Returns false if the writer should pause. */
export function pushChunk(to: Destination, piece: Buffer): boolean {
  // A chunk of size 0 would be the end.
  if (piece.length === 0) return true;
  const size = `${piece.length.toString(16)}\r\n`;
  if (piece.length > COPY_UP_TO) {
    to.push(size);
    to.push(piece);
    return to.push("\r\n");
  }
  const chunk = Buffer.allocUnsafe(size.length + piece.length + 2);
  chunk.write(size, 0, "latin1");
  chunk.set(piece, size.length);
  chunk.write("\r\n", size.length + piece.length, "latin1");
  return to.push(chunk);
}

/** Returns the last chunk and the trailers. */
export function lastChunk(trailers: readonly Field[]): string {
  let text = "0\r\n";
  for (const { name, value } of trailers) text += `${name}: ${value}\r\n`;
  return `${text}\r\n`;
}
