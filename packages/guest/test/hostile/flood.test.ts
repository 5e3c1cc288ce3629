/** A guest that sends as fast as it can: how much of it the platform handles, counted at a real socket. */
import type { Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { textsOf } from "../../../machines/test/logs/helpers.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { encodeFrame, FrameType } from "../../src/frame.ts";
import { encodeListeners } from "../../src/listening.ts";
import { costOf, PACE } from "../../src/pace.ts";
import { socketPair, Target } from "./attack.ts";

/** What a socket reads at once. */
const CHUNK_BYTES = 64 * 1024;
const MB = 1024 * 1024;

let target: Target;
let ours: Socket;
let guest: Socket;

beforeEach(async () => {
  const folder = await tempFolder("flood");
  target = new Target(folder, "flood");
  [ours, guest] = await socketPair(folder, "flood");
  await target.attach(ours);
});
afterEach(async () => {
  await target.close();
  guest.destroy();
});

const written = (bytes: Buffer) => new Promise<void>((resolve) => guest.write(bytes, () => resolve()));
const bad = encodeFrame(FrameType.pong);
bad[16] = (bad[16] ?? 0) ^ 1;

test.each([
  ["lines, each in a frame", encodeFrame(FrameType.log, Buffer.from("y\n"), 1), 1],
  ["reports of lost output", encodeFrame(FrameType.printed, Buffer.alloc(8, 1)), 1],
  ["connections", encodeFrame(FrameType.accept, undefined, 17), 1],
  ["data of streams that nobody knows", encodeFrame(FrameType.data, Buffer.from("x"), 18), 1],
  ["complaints of 64 KB", encodeFrame(FrameType.error, Buffer.alloc(65_536, "x")), 1025],
  [
    "many listeners",
    encodeFrame(
      FrameType.listening,
      encodeListeners(Array.from({ length: 64 }, (_, at) => ({ address: "::", port: 80 + at }))),
    ),
    20,
  ],
  ["frames with a wrong checksum", bad, bad.length / 64],
])(
  "%s: the platform handles a burst, then the rate, and does not read the rest",
  async (_name, frame, cost) => {
    const begun = performance.now();
    const handled = () => (ours.bytesRead / frame.length) * cost;
    const allowed = () => PACE.burst + (PACE.perSecond * (performance.now() - begun)) / 1000;
    const many = Buffer.concat(Array.from({ length: Math.ceil(CHUNK_BYTES / frame.length) }, () => frame));
    const sending = (async () => {
      while (!guest.destroyed && handled() < 2 * PACE.burst) await written(many);
    })();
    const settled = () => ours.isPaused() || handled() >= 2 * PACE.burst;
    await vi.waitFor(() => expect(settled()).toBe(true), { timeout: 60_000, interval: 1 });
    // A chunk may go beyond what is allowed, one be in the socket's own buffer, and one be an incomplete frame.
    expect(handled()).toBeLessThanOrEqual(allowed() + 3 * (CHUNK_BYTES / frame.length) * cost);
    guest.destroy();
    await sending;
  },
  120_000,
);

test("behind any amount of output, the agent's answer arrives, and most of the output was never cut into lines", async () => {
  const begun = performance.now();
  const chunk = encodeFrame(FrameType.log, Buffer.from("y\n".repeat(8192)), 1);
  const answer = target.guest.live?.agent.ping(AbortSignal.timeout(60_000), Buffer.from("there?"));
  for (let sent = 0; sent < 10 * MB; sent += chunk.length) await written(chunk);
  await written(encodeFrame(FrameType.pong, Buffer.from("there?")));
  expect((await answer)?.toString()).toBe("there?");
  const seconds = (performance.now() - begun) / 1000;
  await target.log.close();
  const lines = (await textsOf(target.log)).filter((text) => text === "y");
  expect(lines.length).toBeLessThanOrEqual(25_000 + 5000 * seconds);
});

test("a copy of files is not held back: its frames are few, and its bytes wait for their reader", () => {
  const frame = { type: FrameType.data, payload: Buffer.alloc(16 * 1024) };
  const framesOf300Mb = (300 * MB) / frame.payload.length;
  expect(framesOf300Mb * costOf(frame)).toBeLessThan(PACE.perSecond);
});
