/**
 * How a machine travels: its papers, then the stream of its files in frames, each with a checksum, then the end. A stream
 * that breaks off, or of which a bit changed on the way, is never taken for a whole one.
 *
 *   frame: type (1 byte) | length of the payload (4 bytes, big-endian) | SHA-256 of the payload (32 bytes) | payload
 */
import { createHash } from "node:crypto";

/** What a frame holds: JSON of the papers, a piece of the files, or JSON of the end. */
export const FRAMES = { papers: 1, data: 2, end: 3 } as const;
export type FrameType = (typeof FRAMES)[keyof typeof FRAMES];

const HEADER_BYTES = 37;
/** The longest payload that is accepted. Pieces of files are far smaller, and papers hold a configuration with its files. */
const MAX_PAYLOAD_BYTES = 16 * 1024 * 1024;

export interface Frame {
  type: FrameType;
  payload: Buffer;
}

/** Returns the bytes of a frame. */
export function frame(type: FrameType, payload: Buffer): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(type, 0);
  header.writeUInt32BE(payload.length, 1);
  createHash("sha256").update(payload).digest().copy(header, 5);
  return Buffer.concat([header, payload]);
}

/** Yields the frames of a stream. Throws when one is damaged, or the stream ends in the middle of one. */
export async function* framesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Frame, void> {
  let held: Buffer[] = [];
  let bytes = 0;
  let needed = HEADER_BYTES;
  for await (const piece of stream) {
    held.push(piece);
    bytes += piece.length;
    while (bytes >= needed) {
      const all = held.length === 1 ? (held[0] as Buffer) : Buffer.concat(held);
      held = [all];
      needed = HEADER_BYTES + lengthOf(all);
      if (all.length < needed) break;
      yield checked(all.subarray(0, needed));
      const rest = all.subarray(needed);
      held = rest.length === 0 ? [] : [rest];
      bytes = rest.length;
      needed = HEADER_BYTES;
    }
  }
  if (bytes > 0) throw new Error("the stream ended in the middle of a frame");
}

function lengthOf(all: Buffer): number {
  const length = all.readUInt32BE(1);
  if (length > MAX_PAYLOAD_BYTES) throw new Error(`a frame of ${length} bytes is too long`);
  return length;
}

function checked(all: Buffer): Frame {
  const type = all.readUInt8(0) as FrameType;
  const payload = all.subarray(HEADER_BYTES);
  if (!createHash("sha256").update(payload).digest().equals(all.subarray(5, HEADER_BYTES)))
    throw new Error("a piece of the machine was damaged on the way");
  return { type, payload };
}
