/**
 * How a machine travels: as a stream of frames, each with a checksum, compressed as a whole, because much of a memory repeats
 * itself. A stream that breaks off, or of which a bit changed on the way, is never taken for a whole one.
 *
 *   memory, as often as it is read while the machine may still run
 *   papers
 *   what has changed of the memory since
 *   data: the archive of all other files
 *   end
 *
 *   frame: type (1 byte) | length of the payload (4 bytes, big-endian) | SHA-256 of the payload (32 bytes) | payload
 */
import { hash } from "node:crypto";
import { finished, type Readable } from "node:stream";
import { constants, createZstdCompress, createZstdDecompress, type ZstdCompress } from "node:zlib";

/** What a frame holds: JSON of the papers, a part of the archive, JSON of the end, or a batch of pieces of memory. */
export const FRAMES = { papers: 1, data: 2, end: 3, memory: 4 } as const;
export type FrameType = (typeof FRAMES)[keyof typeof FRAMES];

const HEADER_BYTES = 37;
/** The longest payload that is accepted. Pieces of files are far smaller, and papers hold a configuration with its files. */
const MAX_PAYLOAD_BYTES = 16 * 1024 * 1024;

export interface Frame {
  type: FrameType;
  payload: Buffer;
}

export function frame(type: FrameType, payload: Buffer): Buffer {
  return Buffer.concat([header(type, payload), payload]);
}

/** Returns what comes before the payload of a frame, for one that is long and need not be copied. */
export function header(type: FrameType, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.writeUInt8(type, 0);
  bytes.writeUInt32BE(payload.length, 1);
  hash("sha256", payload, "buffer").copy(bytes, 5);
  return bytes;
}

/** Yields the frames of a stream. Throws when one is damaged, or the stream ends in the middle of one. */
export async function* framesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Frame, void> {
  const held = new Held();
  for await (const piece of stream) {
    held.add(piece);
    for (let needed = neededFor(held); held.bytes >= needed; needed = neededFor(held)) yield checked(held.take(needed));
  }
  if (held.bytes > 0) throw new Error("the stream ended in the middle of a frame");
}

/** How many bytes the next frame has, as far as that is known. */
function neededFor(held: Held): number {
  if (held.bytes < HEADER_BYTES) return HEADER_BYTES;
  const length = held.peek(HEADER_BYTES).readUInt32BE(1);
  if (length > MAX_PAYLOAD_BYTES) throw new Error(`a frame of ${length} bytes is too long`);
  return HEADER_BYTES + length;
}

/** Bytes that have arrived, in the pieces in which they came: what is long is copied once at most. */
class Held {
  #pieces: Buffer[] = [];
  bytes = 0;

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    this.bytes += piece.length;
  }

  peek(count: number): Buffer {
    const [first] = this.#pieces;
    return first !== undefined && first.length >= count ? first : Buffer.concat(this.#pieces, count);
  }

  take(count: number): Buffer {
    const taken = this.peek(count).subarray(0, count);
    this.bytes -= count;
    let left = count;
    while (left > 0) {
      const first = this.#pieces.shift() as Buffer;
      if (first.length > left) this.#pieces.unshift(first.subarray(left));
      left -= Math.min(left, first.length);
    }
    return taken;
  }
}

function checked(all: Buffer): Frame {
  const type = all.readUInt8(0) as FrameType;
  const payload = all.subarray(HEADER_BYTES);
  if (!hash("sha256", payload, "buffer").equals(all.subarray(5, HEADER_BYTES)))
    throw new Error("a piece of the machine was damaged on the way");
  return { type, payload };
}

/** The fastest: the connection between two hosts is seldom slower than it. */
const LEVEL = 1;
/** What zstd hands out at a time, in bytes. Each costs a way through Node's threads, and its default is 16 KB. */
const CHUNK_BYTES = 1024 * 1024;

/** Returns a stream that compresses what is written to it. */
export function compression(): ZstdCompress {
  const params = { [constants.ZSTD_c_compressionLevel]: LEVEL };
  return createZstdCompress({ params, chunkSize: CHUNK_BYTES });
}

/** Yields what was compressed. Throws when it breaks off. The stream itself is left open: its sender may have to be answered. */
export async function* decompressed(stream: Readable): AsyncGenerator<Buffer, void> {
  const decompress = createZstdDecompress({ chunkSize: CHUNK_BYTES });
  const forget = finished(stream, { writable: false }, (error) => {
    if (error) decompress.destroy(error);
  });
  stream.pipe(decompress);
  try {
    for await (const piece of decompress as AsyncIterable<Buffer>) yield piece;
  } finally {
    stream.unpipe(decompress);
    forget();
  }
}
