/** What the hostile guest has found, each fault by itself. */
import type { Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SELDOM_MS, SeldomLog } from "../../../machines/src/seldom-log.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { MOST_UNREAD_BYTES } from "../../src/agent.ts";
import { encodeFrame, FrameType, MAX_PAYLOAD } from "../../src/frame.ts";
import { encodeListeners } from "../../src/listening.ts";
import { GuestStreams, MOST_HELD_BYTES } from "../../src/streams.ts";
import { goodHello, socketPair, Target } from "./attack.ts";

let target: Target;
let guest: Socket;

beforeEach(async () => {
  const folder = await tempFolder("hostile");
  target = new Target(folder, "hostile");
  const [ours, theirs] = await socketPair(folder, "hostile");
  guest = theirs;
  await target.attach(ours);
  guest.write(goodHello());
  guest.once("data", () => guest.write(goodHello()));
  await target.guest.live?.agent.hello(AbortSignal.timeout(5000));
});
afterEach(async () => {
  await target.close();
  guest.destroy();
});

const say = (type: number, payload?: Buffer, stream?: number) => guest.write(encodeFrame(type, payload, stream));
const agent = () => {
  const { live } = target.guest;
  if (live === undefined) throw new Error("there is no guest");
  return live.agent;
};

test("output of a command after its end ends the command, where it ended the platform", async () => {
  const command = agent().streams.run({ args: ["app"] });
  const [output, stream] = [command.stdout.toArray(), 16];
  say(FrameType.data, Buffer.from("one"), stream);
  say(FrameType.end, undefined, stream);
  say(FrameType.end, undefined, stream);
  say(FrameType.data, Buffer.from("two"), stream);
  await expect(command.exit).rejects.toThrow("more was sent after the end");
  expect(Buffer.concat(await output).toString()).toBe("one");
});

test("a guest that makes the platform answer and reads none of it loses its channel, with the reason", {
  tags: "again",
  timeout: 120_000,
}, async () => {
  guest.pause();
  // Each is answered with a reset of a stream that nobody knows.
  const data = encodeFrame(FrameType.data, Buffer.from("x"), 99);
  const many = Buffer.concat(Array.from({ length: 2000 }, () => data));
  const broken = new Promise<string>((resolve) => {
    agent().onBroken = resolve;
  });
  for (let sent = 0; !guest.destroyed && sent < 20 * MOST_UNREAD_BYTES; sent += many.length)
    await new Promise<void>((resolve) => guest.write(many, () => resolve()));
  expect(await broken).toBe("the guest does not read what it is sent");
  await expect(agent().ping(AbortSignal.timeout(5000))).rejects.toThrow("channel to the guest");
});

test("streams that begin and end while nothing can be sent are bounded", () => {
  const streams = new GuestStreams();
  streams.onConnection = (connection) => {
    connection.on("error", () => {});
    connection.end(answer);
  };
  const answer = Buffer.alloc(MAX_PAYLOAD / 2);
  let most = 0;
  for (let number = 0; number < (4 * MOST_HELD_BYTES) / answer.length; number += 1) {
    const stream = 2 * number + 1;
    streams.receive({ type: FrameType.accept, stream, payload: Buffer.alloc(0) });
    streams.receive({ type: FrameType.reset, stream, payload: Buffer.from("no") });
    most = Math.max(most, streams.held);
  }
  expect(most).toBeGreaterThan(100);
  expect(most).toBeLessThanOrEqual(2 * (MOST_HELD_BYTES / answer.length));
});

test("a flood of complaints is a line in the log, and how many there were", () => {
  const lines: unknown[] = [];
  let now = 0;
  const log = new SeldomLog(
    (fields) => lines.push(fields),
    () => now,
  );
  for (let count = 0; count < 1000; count += 1) log.add("no");
  now += SELDOM_MS;
  log.add("no");
  expect(lines).toEqual([{ message: "no" }, { message: "no", omitted: 999 }]);
});

test("a guest's words are cut, and its addresses counted, before they reach records and replies", async () => {
  const started = agent().run(
    {
      ...{ hostname: "m", args: ["app"], env: {}, user: "", workdir: "/", ports: [], volumes: [] },
      network: { address: "", gateway: "", dns: "", hosts: [] },
    },
    AbortSignal.timeout(5000),
  );
  say(FrameType.startFailed, Buffer.alloc(MAX_PAYLOAD, "x"));
  await expect(started).rejects.toThrow(/^x{1000}\.\.\.$/);
  expect(agent().startFailure).toHaveLength(1003);

  const listeners = Array.from({ length: 3000 }, (_, port) => ({ address: "0.0.0.0", port: 20_000 + port }));
  say(FrameType.listening, encodeListeners(listeners));
  await vi.waitFor(() => expect(target.guest.live?.reachability.why).toContain("59 more"), 20_000);
  expect(target.guest.live?.reachability.why?.length).toBeLessThan(500);
});
