/**
 * Memory on its way to another host, piece by piece. It is read more than once: while the guest still runs, and once it is
 * suspended. From the second time on, only what has changed is sent.
 */
import { hash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";

/** What is compared and sent as a whole, in bytes. Smaller ones find less that has not changed; larger ones need fewer sums. */
export const PIECE_BYTES = 64 * 1024;
/** Pieces that are read and sent together: 1 MiB, which a disk reads as fast as more. */
const BATCH_PIECES = 16;
const BATCH_BYTES = BATCH_PIECES * PIECE_BYTES;
/** How many pieces there are in a batch, and the index of each: 4 bytes, big-endian. */
const HEADER_BYTES = 4 + 4 * BATCH_PIECES;
/** How much is read without a change before an empty batch says that the reader is still there: a slow disk's half a minute. */
const SILENT_BYTES = 256 * 1024 * 1024;
const ZEROS = Buffer.alloc(BATCH_BYTES);

/** A batch without pieces: it says that the other side is still there. */
export const NO_PIECES = Buffer.alloc(HEADER_BYTES);

/** SHA-256 of a piece. */
const SUM_BYTES = 32;
/** Stands for a whole piece that was never written. */
const SUM_OF_ZEROS = Buffer.alloc(SUM_BYTES);

/** What a copy of a memory holds: one sum for each piece. A new one holds zeros only. */
export class PieceSums {
  #sums = Buffer.alloc(0);

  /** Remembers the content of a piece. Returns whether it is another one than before. */
  note(index: number, piece: Buffer): boolean {
    this.#reach(index + 1);
    const known = this.#sums.subarray(index * SUM_BYTES, (index + 1) * SUM_BYTES);
    const isZero = piece.equals(ZEROS.subarray(0, PIECE_BYTES));
    const sum = isZero ? SUM_OF_ZEROS : hash("sha256", piece, "buffer");
    if (sum.equals(known)) return false;
    sum.copy(known);
    return true;
  }

  /** Whether all of some pieces are known to be zeros. */
  areZeros(first: number, count: number): boolean {
    const known = this.#sums.subarray(first * SUM_BYTES, (first + count) * SUM_BYTES);
    return known.every((byte) => byte === 0);
  }

  /** Returns a sum over a memory of this size, in hexadecimal. */
  total(bytes: number): string {
    const count = Math.ceil(bytes / PIECE_BYTES);
    this.#reach(count);
    return hash("sha256", this.#sums.subarray(0, count * SUM_BYTES));
  }

  #reach(count: number): void {
    if (this.#sums.length >= count * SUM_BYTES) return;
    // Twice as much each time, so that a large memory is not copied for each of its pieces.
    const longer = Buffer.alloc(Math.max(count * SUM_BYTES, this.#sums.length * 2));
    this.#sums.copy(longer);
    this.#sums = longer;
  }
}

/** What {@link changedPieces} has found, in bytes. */
export interface Changes {
  read: number;
  changed: number;
}

/**
 * Reads a memory file, and yields batches of the pieces that `sums` does not have yet, which it records. A batch is for
 * {@link runsIn}, and holds until the next one is asked for; while much is read that has not changed, some are empty.
 * `onBytes` is told how many bytes were read. Rejects with the signal's reason, and when the file cannot be read.
 */
export async function* changedPieces(
  file: Pick<FileHandle, "read">,
  sums: PieceSums,
  { signal, onBytes }: { signal: AbortSignal; onBytes(bytes: number): void },
): AsyncGenerator<Buffer, Changes> {
  const room = Buffer.allocUnsafeSlow(BATCH_BYTES);
  const batch = new Batch();
  let changed = 0;
  let silent = 0;
  let at = 0;
  for (let bytes = BATCH_BYTES; bytes === BATCH_BYTES; at += bytes) {
    signal.throwIfAborted();
    bytes = await readAt(file, room, at);
    silent += bytes;
    for (const [index, piece] of unknownIn(room.subarray(0, bytes), at / PIECE_BYTES, sums)) {
      changed += piece.length;
      batch.add(index, piece);
      if (!batch.isFull) continue;
      silent = 0;
      yield batch.bytes;
      batch.clear();
    }
    onBytes(bytes);
    if (silent < SILENT_BYTES) continue;
    silent = 0;
    yield NO_PIECES;
  }
  if (!batch.isEmpty) yield batch.bytes;
  return { read: at, changed };
}

/** Fills the room, or reads to the end of the file. Of what cannot be read, the kernel returns what comes before at first. */
async function readAt(file: Pick<FileHandle, "read">, room: Buffer, at: number): Promise<number> {
  let filled = 0;
  for (let last = 1; last > 0 && filled < room.length; filled += last)
    ({ bytesRead: last } = await file.read(room, filled, room.length - filled, at + filled));
  return filled;
}

function* unknownIn(read: Buffer, first: number, sums: PieceSums): Generator<[index: number, piece: Buffer]> {
  // Much of a memory was never written, and comparing it as a whole takes a tenth of the time.
  if (read.equals(ZEROS) && sums.areZeros(first, BATCH_PIECES)) return;
  for (let at = 0; at < read.length; at += PIECE_BYTES) {
    const index = first + at / PIECE_BYTES;
    const piece = read.subarray(at, at + PIECE_BYTES);
    if (sums.note(index, piece)) yield [index, piece];
  }
}

/** Pieces that are sent together: the header, and then what is in them. */
class Batch {
  // Used again and again: the garbage of large buffers makes Node look through all of its memory many times a second.
  readonly #room = Buffer.alloc(HEADER_BYTES + BATCH_BYTES);
  #count = 0;
  #end = HEADER_BYTES;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  get isFull(): boolean {
    return this.#count === BATCH_PIECES;
  }

  get bytes(): Buffer {
    return this.#room.subarray(0, this.#end);
  }

  add(index: number, piece: Buffer): void {
    this.#count += 1;
    this.#room.writeUInt32BE(this.#count, 0);
    this.#room.writeUInt32BE(index, 4 * this.#count);
    this.#end += piece.copy(this.#room, this.#end);
  }

  clear(): void {
    this.#count = 0;
    this.#end = HEADER_BYTES;
  }
}

/** Pieces that follow one another in a memory. */
export interface Run {
  first: number;
  pieces: Buffer[];
  bytes: Buffer;
}

/** Returns what is in a batch. Throws when it is not one. */
export function runsIn(batch: Buffer): Run[] {
  const count = batch.readUInt32BE(0);
  const all = batch.subarray(HEADER_BYTES);
  if (count > BATCH_PIECES || Math.ceil(all.length / PIECE_BYTES) !== count)
    throw new Error(`a batch of ${all.length} bytes cannot have ${count} pieces`);
  const indices = Array.from({ length: count }, (_, number) => batch.readUInt32BE(4 + 4 * number));
  // Only the last piece of a memory is shorter, and the last of its batch.
  const pieces = indices.map((_, number) => all.subarray(number * PIECE_BYTES, (number + 1) * PIECE_BYTES));
  const begins = indices.flatMap((index, number) => (indices[number - 1] === index - 1 ? [] : [number]));
  return begins.map((begin, number) => {
    const end = begins[number + 1] ?? count;
    const bytes = all.subarray(begin * PIECE_BYTES, end * PIECE_BYTES);
    return { first: indices[begin] as number, pieces: pieces.slice(begin, end), bytes };
  });
}
