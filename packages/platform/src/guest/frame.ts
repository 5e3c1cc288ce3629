/**
 * The framed protocol of the agent channel, platform side.
 * `packages/guest/agent/frame.h` is its twin and holds the layout of a frame.
 */
import { crc32 } from "node:zlib";

const MAGIC = Buffer.from("HBN1", "latin1");
const HEADER = 20;

/** The most a frame may carry, in bytes. Larger messages go as several frames. */
export const MAX_PAYLOAD = 65_536;

/** Frame types; the numbers are the wire's. */
export const FrameType = {
  helloRequest: 0x01,
  pad: 0x02,
  set: 0x10,
  run: 0x11,
  stop: 0x12,
  quiesce: 0x13,
  awake: 0x14,
  ping: 0x15,
  hello: 0x81,
  started: 0x82,
  startFailed: 0x83,
  ready: 0x84,
  exit: 0x85,
  log: 0x86,
  quiesced: 0x87,
  awoken: 0x88,
  pong: 0x89,
  error: 0x8a,
} as const;

/** One message of the channel. `stream` 0 is control, 1 the app's stdout, 2 its stderr. */
export interface Frame {
  type: number;
  stream: number;
  payload: Buffer;
}

/** The bytes of one frame. Throws a RangeError when the payload is over {@link MAX_PAYLOAD}. */
export function encodeFrame(type: number, payload: Uint8Array = Buffer.alloc(0), stream = 0): Buffer {
  if (payload.length > MAX_PAYLOAD) throw new RangeError(`a frame carries at most ${MAX_PAYLOAD} bytes`);
  const frame = Buffer.alloc(HEADER + payload.length);
  MAGIC.copy(frame);
  frame[4] = type;
  frame.writeUInt32LE(stream, 8);
  frame.writeUInt32LE(payload.length, 12);
  frame.set(payload, HEADER);
  frame.writeUInt32LE(checksum(frame), 16);
  return frame;
}

function checksum(frame: Buffer): number {
  return crc32(frame.subarray(HEADER), crc32(frame.subarray(4, 16)));
}

/**
 * Cuts a byte stream into frames. Bytes that belong to no valid frame are skipped up to the
 * next magic, so neither noise nor a frame cut short can end the channel.
 *
 * @example
 * const reader = new FrameReader();
 * for (const frame of reader.push(chunk)) handle(frame);
 */
export class FrameReader {
  /** Bytes that belonged to no valid frame so far. */
  skipped = 0;
  #pending: Buffer = Buffer.alloc(0);

  /** Takes the next bytes and returns the frames they complete. At most one frame stays buffered. */
  push(chunk: Uint8Array): Frame[] {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    const frames: Frame[] = [];
    let at = this.#nextMagic(0);
    while (this.#pending.length - at >= HEADER) {
      const rest = this.#pending.subarray(at);
      const length = rest.readUInt32LE(12);
      const plausible = rest[5] === 0 && rest.readUInt16LE(6) === 0 && length <= MAX_PAYLOAD;
      if (plausible && rest.length < HEADER + length) break;
      const whole = plausible ? rest.subarray(0, HEADER + length) : undefined;
      if (whole !== undefined && checksum(whole) === whole.readUInt32LE(16)) {
        const payload = Buffer.from(whole.subarray(HEADER));
        frames.push({ type: whole[4] ?? 0, stream: whole.readUInt32LE(8), payload });
        at = this.#nextMagic(at + whole.length);
      } else {
        this.skipped += 1;
        at = this.#nextMagic(at + 1);
      }
    }
    this.#pending = Buffer.from(this.#pending.subarray(at));
    return frames;
  }

  /** Where the next frame may begin, from `from` on; counts what it passes over. */
  #nextMagic(from: number): number {
    const whole = this.#pending.indexOf(MAGIC, from);
    let at = whole === -1 ? this.#pending.length : whole;
    for (let cut = MAGIC.length - 1; whole === -1 && cut > 0; cut -= 1) {
      const tail = this.#pending.length - cut;
      if (tail >= from && MAGIC.subarray(0, cut).equals(this.#pending.subarray(tail))) {
        at = tail;
        break;
      }
    }
    this.skipped += at - from;
    return at;
  }
}
