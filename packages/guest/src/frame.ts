/**
 * The frames of the agent channel, on the platform's side. `packages/guest/agent/frame.h` is the agent's side and
 * describes the layout of a frame.
 */
import { crc32 } from "node:zlib";

/** What every frame begins with. */
export const MAGIC = Buffer.from("HBN1", "latin1");
/** Bytes before the payload. */
export const HEADER = 20;

/** How many bytes a payload may have. Larger messages are sent as several frames. */
export const MAX_PAYLOAD = 65_536;

/** Types of frames by their numbers on the wire. frame.h says what each means. */
export const FrameType = {
  helloRequest: 0x01,
  pad: 0x02,
  set: 0x10,
  run: 0x11,
  stop: 0x12,
  quiesce: 0x13,
  awake: 0x14,
  ping: 0x15,
  become: 0x16,
  exec: 0x20,
  resize: 0x21,
  signal: 0x22,
  data: 0x40,
  end: 0x41,
  credit: 0x42,
  reset: 0x43,
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
  accept: 0x8b,
  dataErr: 0x8c,
  execExit: 0x8d,
  printed: 0x8e,
  listening: 0x8f,
  became: 0x90,
  execStarted: 0x91,
  kept: 0x92,
} as const;

/**
 * One message of the channel. `stream` is 0 for control, 1 for the app's stdout, 2 for its stderr; for others, see
 * streams.ts. The payload of a `log` is part of what was received, and valid until the reader gets the next bytes: an app
 * may print megabytes a second, most of which nobody keeps.
 */
export interface Frame {
  type: number;
  stream: number;
  payload: Buffer;
}

/** Returns the bytes of one frame. Throws a RangeError when the payload is longer than {@link MAX_PAYLOAD}. */
export function encodeFrame(type: number, payload: Uint8Array = Buffer.alloc(0), stream = 0): Buffer {
  if (payload.length > MAX_PAYLOAD) throw new RangeError(`the payload of a frame has at most ${MAX_PAYLOAD} bytes`);
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

/** For every byte received, this many bytes may be checked in vain, in addition to {@link CREDIT}. */
const CHECKS_PER_BYTE = 2;
const CREDIT = 16 * MAX_PAYLOAD;

/**
 * Cuts a stream of bytes into frames. Bytes that don't belong to a valid frame are skipped up to the next magic, so
 * neither noise nor an incomplete frame breaks the channel.
 *
 * Guests are not trusted: with overlapping headers, one could have every byte checked thousands of times. Therefore a
 * failed check costs credit, which only received bytes bring. A reader without credit skips all of a frame that fails
 * its check, so that the work stays linear.
 *
 * @example
 * const reader = new FrameReader();
 * for (const frame of reader.push(chunk)) handle(frame);
 */
export class FrameReader {
  /** How many bytes so far did not belong to a valid frame. */
  skipped = 0;
  /** The beginning of a frame (its first `#length` bytes), and room for more of it. */
  #pending: Buffer = Buffer.alloc(0);
  #length = 0;
  #credit = CREDIT;

  /** How many bytes wait for the rest of their frame. Never more than one frame has. */
  get buffered(): number {
    return this.#length;
  }

  /** Takes the next bytes and returns the frames they complete. */
  push(chunk: Uint8Array): Frame[] {
    const bytes = this.#join(chunk);
    const frames: Frame[] = [];
    this.#credit = Math.min(CREDIT, this.#credit + CHECKS_PER_BYTE * chunk.length);
    let at = this.#nextMagic(bytes, 0);
    while (bytes.length - at >= HEADER) {
      const length = bytes.readUInt32LE(at + 12);
      const plausible = (bytes.readUInt32LE(at + 4) & 0xffffff00) === 0 && length <= MAX_PAYLOAD;
      const end = plausible ? at + HEADER + length : at + 1;
      if (end > bytes.length) break;
      const whole = bytes.subarray(at, end);
      if (plausible && checksum(whole) === whole.readUInt32LE(16)) {
        const type = whole[4] ?? 0;
        const payload = whole.subarray(HEADER);
        const stream = whole.readUInt32LE(8);
        frames.push({ type, stream, payload: type === FrameType.log ? payload : Buffer.from(payload) });
        at = this.#nextMagic(bytes, end);
      } else {
        this.#credit -= whole.length;
        const next = this.#credit > 0 ? at + 1 : end;
        this.skipped += next - at;
        at = this.#nextMagic(bytes, next);
      }
    }
    this.#keep(bytes, at);
    return frames;
  }

  /** Returns what was kept, followed by the chunk. The room doubles when it grows, so mostly the chunk alone is copied. */
  #join(chunk: Uint8Array): Buffer {
    if (this.#length === 0) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const length = this.#length + chunk.length;
    if (length > this.#pending.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#pending.length));
      this.#pending.copy(larger, 0, 0, this.#length);
      this.#pending = larger;
    }
    this.#pending.set(chunk, this.#length);
    return this.#pending.subarray(0, length);
  }

  #keep(bytes: Buffer, from: number): void {
    const inPlace = from === 0 && this.#length > 0;
    this.#length = bytes.length - from;
    if (!inPlace) this.#pending = Buffer.from(bytes.subarray(from));
  }

  /** Returns where the next frame may begin, at `from` or later, and counts the bytes before it as skipped. */
  #nextMagic(bytes: Buffer, from: number): number {
    const whole = bytes.indexOf(MAGIC, from);
    const at = whole === -1 ? cutMagic(bytes, from) : whole;
    this.skipped += at - from;
    return at;
  }
}

/** Returns where a magic begins that is cut off by the end of the bytes, or their length if there is none. */
function cutMagic(bytes: Buffer, from: number): number {
  for (let cut = MAGIC.length - 1; cut > 0; cut -= 1) {
    const at = bytes.length - cut;
    if (at >= from && MAGIC.subarray(0, cut).equals(bytes.subarray(at))) return at;
  }
  return bytes.length;
}
