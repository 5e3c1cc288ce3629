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
const ZEROS = Buffer.alloc(BATCH_BYTES);

/** SHA-256 of a piece. */
const SUM_BYTES = 32;
/** Stands for a piece that was never written. */
const SUM_OF_ZEROS = Buffer.alloc(SUM_BYTES);

/** What a copy of a memory holds: one sum for each piece. A new one holds zeros only. */
export class PieceSums {
  #sums = Buffer.alloc(0);

  /** Remembers the content of a piece. Returns whether it is another one than before. */
  note(index: number, piece: Buffer): boolean {
    this.#reach(index + 1);
    const known = this.#sums.subarray(index * SUM_BYTES, (index + 1) * SUM_BYTES);
    const isZero = piece.equals(ZEROS.subarray(0, piece.length));
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

/**
 * Reads a memory file, and yields batches of the pieces that differ from what `sums` know, which know them from then on. Each
 * batch is to be given to {@link runsIn}, and holds until the next one is asked for. Returns how many bytes have changed. `onBytes` is told how many were read.
 */
export async function* changedPieces(
  file: FileHandle,
  sums: PieceSums,
  { signal, onBytes }: { signal: AbortSignal; onBytes(bytes: number): void },
): AsyncGenerator<Buffer, number> {
  const room = Buffer.allocUnsafeSlow(BATCH_BYTES);
  let changed = 0;
  const batch = new Batch();
  for (let at = 0; ; at += BATCH_BYTES) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(room, 0, BATCH_BYTES, at);
    for (const [index, piece] of unknownIn(room.subarray(0, bytesRead), at / PIECE_BYTES, sums)) {
      changed += piece.length;
      batch.add(index, piece);
      if (!batch.isFull) continue;
      yield batch.bytes;
      batch.clear();
    }
    onBytes(bytesRead);
    if (bytesRead < BATCH_BYTES) break;
  }
  if (!batch.isEmpty) yield batch.bytes;
  return changed;
}

function* unknownIn(read: Buffer, first: number, sums: PieceSums): Generator<[index: number, piece: Buffer]> {
  const count = Math.ceil(read.length / PIECE_BYTES);
  // Much of a memory was never written, and comparing it as a whole takes a tenth of the time.
  if (read.equals(ZEROS.subarray(0, read.length)) && sums.areZeros(first, count)) return;
  for (let number = 0; number < count; number += 1) {
    const piece = read.subarray(number * PIECE_BYTES, (number + 1) * PIECE_BYTES);
    if (sums.note(first + number, piece)) yield [first + number, piece];
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
  /** Index of the first one. */
  first: number;
  pieces: Buffer[];
  /** All of them. */
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

/** Says that the other side is still there: a batch without pieces. */
export const NO_PIECES = Buffer.alloc(HEADER_BYTES);
