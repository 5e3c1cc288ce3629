import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeFrame, type Frame, FrameReader, FrameType, MAX_PAYLOAD } from "../src/frame.ts";

const HEADER = 20;
const PAD = encodeFrame(FrameType.pad, Buffer.alloc(MAX_PAYLOAD));

/** Frames as their bytes, so that vitest shows short differences. */
function described(frames: Frame[]): string[] {
  return frames.map(({ type, stream, payload }) => encodeFrame(type, payload, stream).toString("hex"));
}

function hex(frames: Buffer[]): string[] {
  return frames.map((frame) => frame.toString("hex"));
}

/** Feeds the bytes cut at the given places. */
function feed(reader: FrameReader, bytes: Buffer, cuts: number[] = []): Frame[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).flatMap((to, index) => reader.push(bytes.subarray(places[index], to)));
}

const anyFrame = fc
  .tuple(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ maxLength: 300 }), fc.integer({ min: 0, max: 0xffffffff }))
  .map(([type, payload, stream]) => encodeFrame(type, payload, stream));
const cuts = fc.array(fc.nat(20_000), { maxLength: 40 });
/** Noise that looks like a frame now and then, but holds no whole one. */
const noise = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.constantFrom(..."HBN1".split(""), "HBN", "HBN1\0\0\0\0", "HBHBNHBN1").map((text) => Buffer.from(text)),
    ),
    { maxLength: 8 },
  )
  .map((parts) => Buffer.concat(parts));

describe("encodeFrame", () => {
  test("lays a frame out as frame.h says", () => {
    const frame = encodeFrame(0x86, Buffer.from("hello"), 2);
    expect(frame.toString("latin1", 0, 4)).toBe("HBN1");
    expect([...frame.subarray(4, 16)]).toEqual([0x86, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0]);
    expect(frame.readUInt32LE(16)).toBe(0x0eae2cc2);
    expect(frame.toString("latin1", HEADER)).toBe("hello");
  });

  test("refuses a payload over the limit and takes one at the limit", () => {
    expect(() => encodeFrame(1, Buffer.alloc(MAX_PAYLOAD + 1))).toThrow(RangeError);
    expect(feed(new FrameReader(), encodeFrame(1, Buffer.alloc(MAX_PAYLOAD)))[0]?.payload).toHaveLength(MAX_PAYLOAD);
  });
});

describe("FrameReader", () => {
  test("finds every frame however the bytes are cut", () => {
    fc.assert(
      fc.property(fc.array(anyFrame, { maxLength: 12 }), cuts, (frames, places) => {
        const reader = new FrameReader();
        expect(described(feed(reader, Buffer.concat(frames), places))).toEqual(hex(frames));
        expect([reader.skipped, reader.buffered]).toEqual([0, 0]);
      }),
    );
  });

  test("finds a frame fed byte by byte", () => {
    const frame = encodeFrame(FrameType.log, Buffer.alloc(MAX_PAYLOAD, "HBN1"), 1);
    const reader = new FrameReader();
    const found = [...frame].flatMap((byte) => reader.push(Uint8Array.of(byte)));
    expect(described(found)).toEqual(hex([frame]));
  });

  test("finds every frame between noise, once something large enough follows", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(noise, anyFrame), { maxLength: 10 }), cuts, (parts, places) => {
        const reader = new FrameReader();
        const found = described(feed(reader, Buffer.concat([...parts.flat(), PAD, PAD]), places));
        // Noise may end in what looks like a frame that swallows real ones, but only until the padding.
        const sent = hex(parts.map(([, frame]) => frame));
        expect(found.filter((frame) => frame !== PAD.toString("hex"))).toEqual(sent);
      }),
      { numRuns: 200 },
    );
  });

  test("gives the same frames and the same count whole and in pieces", () => {
    const stream = fc.array(fc.oneof(noise, anyFrame), { maxLength: 12 }).map((parts) => Buffer.concat(parts));
    fc.assert(
      fc.property(stream, cuts, (bytes, places) => {
        const [whole, pieces] = [new FrameReader(), new FrameReader()];
        expect(described(feed(pieces, bytes, places))).toEqual(described(feed(whole, bytes)));
        expect([pieces.skipped, pieces.buffered]).toEqual([whole.skipped, whole.buffered]);
      }),
    );
  });

  test("never throws, and accounts for every byte", () => {
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 500 }), noise, anyFrame);
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 20 }), (chunks) => {
        const reader = new FrameReader();
        let taken = 0;
        for (const chunk of chunks) for (const frame of reader.push(chunk)) taken += HEADER + frame.payload.length;
        const fed = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
        expect(taken + reader.skipped + reader.buffered).toBe(fed);
        expect(reader.buffered).toBeLessThan(HEADER + MAX_PAYLOAD);
      }),
    );
  });

  test("finds a magic split over two reads", () => {
    const frame = encodeFrame(FrameType.ready);
    for (let cut = 1; cut < frame.length; cut += 1) {
      const bytes = Buffer.concat([Buffer.from("HBN"), frame]);
      const reader = new FrameReader();
      expect(described(feed(reader, bytes, [3 + cut]))).toEqual(hex([frame]));
      expect(reader.skipped).toBe(3);
    }
  });

  test.each([65_537, 0x7fffffff, 0x80000000, 0xffffffff])("does not wait for a length of %d", (length) => {
    const oversized = encodeFrame(FrameType.log);
    oversized.writeUInt32LE(length, 12);
    const good = encodeFrame(FrameType.pong, Buffer.from("x"));
    const reader = new FrameReader();
    expect(described(reader.push(Buffer.concat([oversized, good])))).toEqual(hex([good]));
    expect(reader.skipped).toBe(HEADER);
  });

  test.each([4, 5, 6, 7, 8, 12, 16, 19, 20, 22])("refuses a frame whose byte %d was changed", (at) => {
    const bad = encodeFrame(FrameType.log, Buffer.from("abc"));
    bad[at] = (bad[at] ?? 0) ^ 1;
    const good = encodeFrame(FrameType.pong);
    const reader = new FrameReader();
    expect(described(feed(reader, Buffer.concat([bad, good, PAD])))).toEqual(hex([good, PAD]));
    expect(reader.skipped).toBe(bad.length);
  });

  test("a cut frame costs itself only, once a PAD frame has pushed it out", () => {
    const cut = encodeFrame(FrameType.log, Buffer.alloc(60_000, "x")).subarray(0, 1000);
    const good = encodeFrame(FrameType.hello, Buffer.from("here"));
    const reader = new FrameReader();
    expect(reader.push(Buffer.concat([cut, good]))).toEqual([]);
    expect(described(reader.push(PAD))).toEqual(hex([good, PAD]));
    expect(described(reader.push(good))).toEqual(hex([good]));
    expect([reader.skipped, reader.buffered]).toEqual([1000, 0]);
  });

  test("hands out payloads that later input does not change", () => {
    const chunk = encodeFrame(FrameType.hello, Buffer.from("first"));
    const [frame] = new FrameReader().push(chunk);
    chunk.fill(0);
    expect(frame?.payload.toString()).toBe("first");
  });

  test("keeps what it buffers when the caller uses its chunk again", () => {
    const frame = encodeFrame(FrameType.log, Buffer.from("first"));
    const chunk = Buffer.from(frame.subarray(0, 22));
    const reader = new FrameReader();
    reader.push(chunk);
    chunk.fill(0);
    expect(described(reader.push(frame.subarray(22)))).toEqual(hex([frame]));
  });
});

describe("hostile noise", () => {
  const SIZE = 8 * 1024 * 1024;

  /** A header that promises `length` bytes, repeated so densely that candidates overlap. */
  function lies(length: number): Buffer {
    const header = Buffer.alloc(16);
    header.write("HBN1");
    header.writeUInt32LE(length, 12);
    return Buffer.alloc(SIZE, header);
  }

  test.each([
    ["zeros", Buffer.alloc(SIZE)],
    ["the first letter of the magic", Buffer.alloc(SIZE, "H")],
    ["magics", Buffer.alloc(SIZE, "HBN1")],
    ["empty frames that overlap", lies(0)],
    ["frames of 5000 bytes that overlap", lies(5000)],
    ["the largest frames that overlap", lies(MAX_PAYLOAD)],
  ])("8 MB of %s take linear time and little room", (_name, bytes) => {
    const reader = new FrameReader();
    const begun = process.cpuUsage();
    let found = 0;
    let most = 0;
    for (let at = 0; at < SIZE; at += MAX_PAYLOAD) {
      found += reader.push(bytes.subarray(at, at + MAX_PAYLOAD)).length;
      most = Math.max(most, reader.buffered);
    }
    // Time of the CPU, not of the clock: other work on the host does not count. About 0.25 s at worst on a slow core;
    // checking every candidate would take 10 s and more.
    expect(process.cpuUsage(begun).user / 1000).toBeLessThan(2000);
    expect(found).toBe(0);
    expect(most).toBeLessThan(HEADER + MAX_PAYLOAD);
    expect(reader.skipped + reader.buffered).toBe(SIZE);
  });

  test("does not end the channel", () => {
    const reader = new FrameReader();
    const good = encodeFrame(FrameType.hello, Buffer.from("here"));
    reader.push(lies(MAX_PAYLOAD));
    reader.push(Buffer.concat([PAD, PAD]));
    expect(described(reader.push(good))).toEqual(hex([good]));
  });
});
