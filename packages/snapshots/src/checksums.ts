/**
 * Checksums of a memory file, piece by piece. CRC-32 finds every changed bit and every changed run of up to 32 bits, and
 * misses other damage once in 4 billion pieces. It guards against disks and mistakes, not against people: who can write
 * here can write a matching seal. A cryptographic hash takes several times as long, while a visitor waits for the wake.
 */
import type { FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { PAGE, type PageRange, piecesOf, READ_BYTES } from "@hibernaut/lib/page-ranges";

/** Two readers: one waits for the disk while the piece of the other is summed up, and Node has threads left. */
const READERS = 2;
/** Much of a memory was never written. Comparing a piece with zeros is 15 times as fast as summing it up. */
const ZEROS = Buffer.alloc(READ_BYTES);
const SUM_OF_ZEROS = crc32(ZEROS);

/** Consecutive pieces of 1 MiB that cover `size` bytes; the last one may be shorter. */
export function chunksOf(size: number): PageRange[] {
  return [...piecesOf([[0, Math.ceil(size / PAGE)]])];
}

/** Returns the CRC-32 of each piece of at most 1 MiB, in order. Rejects when aborted, or when the file cannot be read. */
export async function checksums(
  file: FileHandle,
  pieces: readonly PageRange[],
  signal: AbortSignal,
): Promise<number[]> {
  const sums: number[] = [];
  const next = pieces.entries();
  const reader = async () => {
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    for (const [index, [from, to]] of next) {
      signal.throwIfAborted();
      const { bytesRead } = await file.read(buffer, 0, (to - from) * PAGE, from * PAGE);
      sums[index] =
        bytesRead === READ_BYTES && buffer.equals(ZEROS) ? SUM_OF_ZEROS : crc32(buffer.subarray(0, bytesRead));
    }
  };
  await Promise.all(Array.from({ length: READERS }, reader));
  return sums;
}
