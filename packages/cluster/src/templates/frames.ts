/** How pieces of a template travel: as frames, of which each has a checksum, compressed as a whole, like a machine that moves. */
import { FRAMES, type Frame, header } from "../moves/frames.ts";

/** Which piece of which file of the template it is: both as 4 bytes, big-endian. */
const HEADER_BYTES = 8;

/** Pieces of one file that are asked for: `count` of them, from number `first` on. */
export interface Range {
  /** The number of the file in the template's contents. */
  file: number;
  first: number;
  count: number;
}

/** Returns what is sent for one piece. */
export function* pieceFrame(file: number, piece: number, bytes: Buffer): Generator<Buffer, void> {
  const which = Buffer.alloc(HEADER_BYTES);
  which.writeUInt32BE(file, 0);
  which.writeUInt32BE(piece, 4);
  const payload = Buffer.concat([which, bytes]);
  yield header(FRAMES.data, payload);
  yield payload;
}

/** Reads such a frame. Throws when it is something else. */
export function pieceOf({ type, payload }: Frame): { file: number; piece: number; bytes: Buffer } {
  if (type !== FRAMES.data || payload.length < HEADER_BYTES) throw new Error("something else than a piece was sent");
  return { file: payload.readUInt32BE(0), piece: payload.readUInt32BE(4), bytes: payload.subarray(HEADER_BYTES) };
}

/** Joins the numbers of pieces of one file, which are sorted, to ranges. Pure. */
export function rangesOf(file: number, pieces: readonly number[]): Range[] {
  const ranges: Range[] = [];
  for (const piece of pieces) {
    const last = ranges.at(-1);
    if (last !== undefined && last.first + last.count === piece) last.count += 1;
    else ranges.push({ file, first: piece, count: 1 });
  }
  return ranges;
}
