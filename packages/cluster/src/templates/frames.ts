/** How pieces of a template travel: as frames, of which each has a checksum, compressed as a whole, like a machine that moves. */
import { FRAMES, type Frame, header } from "../moves/frames.ts";
import { PIECE_BYTES } from "./contents.ts";

/** Which piece of which file of the template it is: both as 4 bytes, big-endian. */
const HEADER_BYTES = 8;

/** Pieces of one file that are asked for: `count` of them, from number `first` on. */
export interface Range {
  /** The number of the file in the template's contents. */
  file: number;
  first: number;
  count: number;
}

/** Where one piece after the other is put to be sent: the garbage of large buffers would keep Node from its work. */
export class PieceRoom {
  readonly #room = Buffer.allocUnsafeSlow(HEADER_BYTES + PIECE_BYTES);

  /** Where the bytes of the next piece go. */
  get bytes(): Buffer {
    return this.#room.subarray(HEADER_BYTES);
  }

  /** Yields what is sent for the piece that is there, of this length. It holds until the next piece is put there. */
  *frame(file: number, piece: number, length: number): Generator<Buffer, void> {
    this.#room.writeUInt32BE(file, 0);
    this.#room.writeUInt32BE(piece, 4);
    const payload = this.#room.subarray(0, HEADER_BYTES + length);
    yield header(FRAMES.data, payload);
    yield payload;
  }
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
