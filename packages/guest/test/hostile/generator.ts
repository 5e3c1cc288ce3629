/**
 * What a hostile guest may write to its channel: frames that are right in form and wrong in everything else, and bytes
 * that are not frames. Reproducible by its seed.
 */
import { encodeFrame, FrameType, HEADER, MAGIC, MAX_PAYLOAD } from "../../src/frame.ts";
import { LISTENER_BYTES } from "../../src/listening.ts";
import { FIRST_COMMAND, MOST_CONNECTIONS } from "../../src/streams.ts";

/** A small, fast generator of random numbers (mulberry32): the quality of a dice is enough. */
export function dice(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const TYPES = Object.values(FrameType);
const WILD_NUMBERS = [0, 1, 2, 3, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 65_535, 65_536, 65_537];
const TEXTS = [
  "GET /v1/app HTTP/1.1\r\nHost: x\r\n\r\n",
  "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n",
  'POST /v1/machine/keepalive HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{"ttl":[null]}',
  'POST /v1/machine/suspend HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"a":{}}}',
  "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
  '{"type":"ready","id":{"__proto__":1}}\n',
  "\u0000\u0001\ufeff not a text \ud800",
  "a line\nanother line\nand one without an end",
].map((text) => Buffer.from(text));

export class HostileGuest {
  readonly #roll: (below: number) => number;
  /** The stream of the newest command, as a guest learns it from what it is sent. */
  newest = FIRST_COMMAND;
  /** The number of frames made so far, whether they are valid or not. */
  made = 0;

  constructor(seed: number) {
    this.#roll = dice(seed);
  }

  /** The next bytes: mostly one frame, sometimes many, or none that is whole. `without` names types that it leaves out. */
  next(without: ReadonlySet<number> = new Set()): Buffer {
    const kind = this.#roll(1000);
    if (kind < 5) return this.#flood();
    this.made += 1;
    if (kind < 60) return this.#broken();
    for (;;) {
      const type = this.#type();
      if (!without.has(type)) return encodeFrame(type, this.#payload(type), this.#stream(type));
    }
  }

  /** Streams are where the state is, so they are the most frequent. */
  #type(): number {
    const kind = this.#roll(10);
    const streams = [FrameType.data, FrameType.end, FrameType.credit, FrameType.reset, FrameType.accept];
    if (kind < 5) return streams[this.#roll(streams.length)] ?? 0;
    if (kind < 6) return this.#roll(2) === 0 ? FrameType.dataErr : FrameType.execExit;
    if (kind < 9) return TYPES[this.#roll(TYPES.length)] ?? 0;
    return this.#roll(256);
  }

  #stream(type: number): number {
    const kind = this.#roll(20);
    if (kind === 0) return WILD_NUMBERS[this.#roll(WILD_NUMBERS.length)] ?? 0;
    if (type === FrameType.log) return this.#roll(4);
    if (type === FrameType.accept) return 2 * this.#roll(2 * MOST_CONNECTIONS) + 1;
    // Half of them at connections, half at the platform's commands.
    return this.#roll(2) === 0
      ? 2 * this.#roll(MOST_CONNECTIONS) + 1
      : Math.max(FIRST_COMMAND, this.newest - 2 * this.#roll(8));
  }

  #payload(type: number): Buffer {
    switch (type) {
      case FrameType.hello:
        return this.#fields(28 + this.#roll(20), 4);
      case FrameType.listening:
        return this.#bytes(this.#roll(200) === 0 ? MAX_PAYLOAD : this.#roll(4 * LISTENER_BYTES));
      case FrameType.credit:
        return this.#fields(this.#roll(10) === 0 ? this.#roll(8) : 4, 4);
      case FrameType.execExit:
      case FrameType.exit:
      case FrameType.awoken:
      case FrameType.printed:
      case FrameType.quiesced:
      case FrameType.started:
        return this.#fields(this.#roll(12), 4);
      case FrameType.accept:
      case FrameType.end:
        return Buffer.alloc(this.#roll(50) === 0 ? 100 : 0);
      default:
        return this.#roll(4) === 0 ? this.#bytes(this.#size()) : (TEXTS[this.#roll(TEXTS.length)] ?? Buffer.alloc(0));
    }
  }

  /** Rarely as large as possible: most of what a guest can do wrong does not depend on it. */
  #size(): number {
    const kind = this.#roll(500);
    return kind === 0 ? MAX_PAYLOAD : kind < 10 ? this.#roll(MAX_PAYLOAD) : this.#roll(64);
  }

  #bytes(size: number): Buffer {
    const bytes = Buffer.alloc(size);
    for (let at = 0; at < size; at += 4) {
      const word = this.#roll(0x1_0000_0000);
      for (let byte = 0; byte < 4 && at + byte < size; byte += 1) bytes[at + byte] = word >>> (8 * byte);
      // The content of large payloads does not matter.
      if (at > 512) break;
    }
    return bytes;
  }

  /** Little-endian numbers, most of them at a limit of something. */
  #fields(size: number, width: number): Buffer {
    const bytes = this.#bytes(size);
    for (let at = 0; at + width <= size; at += width)
      if (this.#roll(2) === 0) bytes.writeUInt32LE(WILD_NUMBERS[this.#roll(WILD_NUMBERS.length)] ?? 0, at);
    return bytes;
  }

  /** A frame with a part of its header wrong, or cut off, or noise. */
  #broken(): Buffer {
    const frame = encodeFrame(this.#type(), this.#bytes(this.#roll(64)), this.#roll(64));
    switch (this.#roll(6)) {
      case 0:
        frame.writeUInt32LE(WILD_NUMBERS[this.#roll(WILD_NUMBERS.length)] ?? 0, 12);
        return frame;
      case 1:
        frame.writeUInt32LE(this.#roll(0x1_0000_0000), 4);
        return frame;
      case 2:
        frame.writeUInt32LE(this.#roll(0x1_0000_0000), 16);
        return frame;
      case 3:
        return frame.subarray(0, this.#roll(frame.length));
      case 4:
        // Headers that overlap: each promises a frame that contains the next.
        return Buffer.concat(Array.from({ length: 8 }, () => Buffer.concat([MAGIC, this.#fields(HEADER - 8, 4)])));
      default:
        return this.#bytes(this.#roll(100));
    }
  }

  #flood(): Buffer {
    const types = [FrameType.hello, FrameType.error, FrameType.ready, FrameType.accept, FrameType.pong];
    const type = types[this.#roll(types.length)] ?? 0;
    const count = 20 + this.#roll(30);
    this.made += count;
    const frames = Array.from({ length: count }, () => encodeFrame(type, this.#payload(type), this.#stream(type)));
    return Buffer.concat(frames);
  }
}
