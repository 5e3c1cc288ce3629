/** Watches an archive on its way to the parser, which keeps records about names in memory, however large they claim to be. */
import { Transform, type TransformCallback } from "node:stream";
import { ApiError } from "../error.ts";

const BLOCK = 512;
/** Bytes of a record about a name. Agents accept and write no larger ones. */
const MOST_RECORD_BYTES = 65_536;
const SIZE_AT = 124;
const SIZE_BYTES = 12;
const TYPE_AT = 156;
/** Records about names: pax, and GNU's for long names and links. */
const RECORDS = "xgLK";

/** Passes an archive on. Fails when a record is too large or the archive has no end. */
export class ArchiveGuard extends Transform {
  readonly #head = Buffer.alloc(BLOCK);
  #have = 0;
  /** Bytes to the next header. */
  #skip = 0;
  #ended = false;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      this.#look(chunk);
      done(null, chunk);
    } catch (error) {
      done(error as Error);
    }
  }

  override _flush(done: TransformCallback): void {
    done(this.#ended ? null : unreadable("it is cut short"));
  }

  #look(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.#ended; ) {
      const skipped = Math.min(this.#skip, chunk.length - at);
      this.#skip -= skipped;
      at += skipped;
      const taken = chunk.copy(this.#head, this.#have, at, Math.min(chunk.length, at + BLOCK - this.#have));
      this.#have += taken;
      at += taken;
      if (this.#have < BLOCK) continue;
      this.#have = 0;
      this.#header(this.#head);
    }
  }

  #header(head: Buffer): void {
    this.#ended = head.every((byte) => byte === 0);
    if (this.#ended) return;
    const size = sizeOf(head);
    const record = RECORDS.includes(String.fromCharCode(head[TYPE_AT] ?? 0));
    if (record && size > MOST_RECORD_BYTES) throw unreadable("a record about a name is larger than 64 KiB");
    this.#skip = Math.ceil(size / BLOCK) * BLOCK;
  }
}

/** The size in a header: octal digits, or a binary number if the highest bit is set. */
function sizeOf(head: Buffer): number {
  const field = head.subarray(SIZE_AT, SIZE_AT + SIZE_BYTES);
  if (((field[0] ?? 0) & 0x80) === 0) {
    const digits = /^ *([0-7]*)[ \0]*$/.exec(field.toString("latin1"))?.[1];
    if (digits === undefined) throw unreadable("a header has a size that is not valid");
    return Number.parseInt(digits || "0", 8);
  }
  const size = Number(BigInt(`0x${field.subarray(1).toString("hex")}`));
  if (!Number.isSafeInteger(size) || field[0] !== 0x80) throw unreadable("a header has a size that is not valid");
  return size;
}

/** The error for an archive that ends the copy. */
export function unreadable(why: string): ApiError {
  return new ApiError({
    code: "aborted",
    message: `The archive cannot be read: ${why}. Files that were copied are complete. Try again.`,
  });
}
