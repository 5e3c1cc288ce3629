/** Bytes between clients and machines: none is lost, changed or kept without end, however slowly either side reads. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { buffer as all } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { Intake } from "../../src/intake.ts";
import { HIGH_WATER_BYTES } from "../../src/tcp/splice.ts";
import { until } from "../http/helpers.ts";
import { plain, tcpRig } from "./tcp-rig.ts";

/** Bytes of which no part looks like another one. */
function noise(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = 1;
  for (let at = 0; at < length; at += 4) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes.writeUInt32LE(state, at);
  }
  return bytes;
}

const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const MEGABYTES = noise(8 * 1024 * 1024);

describe("what a machine sends", () => {
  test("reaches a client that reads nothing for long, and waits at the machine in the meantime", async () => {
    const theirs: Socket[] = [];
    const serve = (socket: Socket) => {
      theirs.push(socket);
      socket.write(MEGABYTES);
      socket.end();
    };
    const { port, released } = await tcpRig({ apps: { db: { serve } } });
    const client = (await plain(port)).pause();
    // The kernel's buffers and the proxy's are full, and more does not move.
    let before = -1;
    await until(() => {
      const now = theirs[0]?.bytesWritten ?? 0;
      const still = now > 0 && now === before;
      before = now;
      return still;
    }, "the machine to wait");
    expect(theirs[0]?.writableLength).toBeGreaterThan(0);
    const came = all(client);
    expect(digest(await came)).toBe(digest(MEGABYTES));
    client.end();
    await vi.waitFor(() => expect(released()).toBe(1));
  });

  test("in pieces of all sizes, with answers in between", async () => {
    const sizes = [1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 300_000, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 70_000, 1];
    const serve = (socket: Socket) => {
      let next = 0;
      socket.on("data", () => socket.write(MEGABYTES.subarray(next, (next += sizes.shift() ?? 0))));
    };
    const expected = [...sizes];
    const { port } = await tcpRig({ apps: { db: { serve } } });
    const client = await plain(port);
    let came = Buffer.alloc(0);
    client.on("data", (piece) => (came = Buffer.concat([came, piece])));
    let total = 0;
    for (const size of expected) {
      client.write("?");
      total += size;
      const wanted = total;
      await until(() => came.length === wanted, `${wanted} bytes`);
    }
    expect(came.equals(MEGABYTES.subarray(0, total))).toBe(true);
  });
});

test("what a client sends reaches a machine that reads nothing for long", async () => {
  const theirs: Socket[] = [];
  const { port } = await tcpRig({ apps: { db: { serve: (socket) => void theirs.push(socket.pause()) } } });
  const client = await plain(port);
  client.end(MEGABYTES);
  await until(() => theirs.length === 1 && client.bytesWritten > HIGH_WATER_BYTES, "the client to send");
  const came = all(theirs[0] as Socket);
  expect(digest(await came)).toBe(digest(MEGABYTES));
  theirs[0]?.end();
  await once(client.resume(), "close");
});

test("a buffer is used again only when nobody needs its bytes, whatever is read and whenever it is written", () => {
  const read = fc.record({ size: fc.integer({ min: 1, max: 70_000 }), done: fc.boolean() });
  fc.assert(
    fc.property(fc.array(read, { maxLength: 40 }), (reads) => {
      const intake = new Intake();
      const { buffer, callback } = intake.onread;
      const held: { piece: Buffer; byte: number }[] = [];
      let [byte, done] = [0, true];
      intake.start((piece) => {
        if (!done) held.push({ piece, byte });
        return { more: true, done };
      });
      for (const { size, done: written } of reads) {
        const free = (buffer as () => Uint8Array)();
        const bytes = Math.min(size, free.length);
        byte = (byte + 1) % 256;
        done = written;
        free.fill(byte, 0, bytes);
        callback(bytes, free);
      }
      for (const one of held) expect(one.piece.every((value) => value === one.byte)).toBe(true);
    }),
  );
});
