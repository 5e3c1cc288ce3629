/** A command as the platform holds it: its end, its influence on the guest, and what waits while the machine sleeps. */
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, test } from "vitest";
import { GuestError } from "../src/error.ts";
import { FrameType } from "../src/frame.ts";
import { GuestStreams } from "../src/streams.ts";

let streams: GuestStreams;
let sent: { type: number; payload: Buffer; stream: number }[];
const flow = () => streams.flow((type, payload, stream) => sent.push({ type, payload: Buffer.from(payload), stream }));

beforeEach(() => {
  streams = new GuestStreams();
  sent = [];
  flow();
});

const say = (type: number, payload: Buffer = Buffer.alloc(0), stream = 16) =>
  streams.receive({ type, payload, stream });

function exitPayload(code: number, signal = 0, how = 0, why = ""): Buffer {
  const payload = Buffer.alloc(9);
  payload.writeUInt32LE(code, 0);
  payload.writeUInt32LE(signal, 4);
  payload[8] = how;
  return Buffer.concat([payload, Buffer.from(why)]);
}

describe("the end of a command", () => {
  test.each([
    ["by itself", exitPayload(3), { code: 3, signal: 0, timedOut: false, failure: undefined }],
    ["by a signal", exitPayload(0, 15), { code: 0, signal: 15, timedOut: false, failure: undefined }],
    ["at its time-out", exitPayload(0, 9, 1), { code: 0, signal: 9, timedOut: true, failure: undefined }],
    ["before it began", exitPayload(127, 0, 2, "no"), { code: 127, signal: 0, timedOut: false, failure: "no" }],
  ])("%s", async (_how, payload, exit) => {
    const command = streams.run({ args: ["app"] });
    const output = text(command.stdout);
    say(FrameType.data, Buffer.from("said"));
    say(FrameType.execExit, payload);
    expect(await command.exit).toEqual(exit);
    expect(await output).toBe("said");
    expect(streams.open).toBe(0);
  });

  test("an end that is cut short does not count", () => {
    streams.run({ args: ["app"] });
    say(FrameType.execExit, Buffer.alloc(8));
    expect(streams.open).toBe(1);
  });

  test("a guest that is gone rejects it, and its outputs end", async () => {
    const command = streams.run({ args: ["app"] });
    streams.reset("the machine ended");
    await expect(command.exit).rejects.toThrow("the machine ended");
    expect(await text(command.stdout)).toBe("");
    expect(await text(command.stderr)).toBe("");
    command.kill();
    command.signal(9);
    expect(sent.map(({ type }) => type)).toEqual([FrameType.exec]);
  });

  test("a caller that goes away kills it", async () => {
    const command = streams.run({ args: ["app"] });
    command.kill();
    await expect(command.exit).rejects.toThrow("the caller is gone");
    expect(sent.at(-1)).toMatchObject({ type: FrameType.reset, stream: 16 });
  });
});

describe("the start of a command", () => {
  const pid = Buffer.from([42, 0, 0, 0]);

  test("is its process id, said once", async () => {
    const command = streams.run({ args: ["app"] });
    say(FrameType.execStarted, Buffer.alloc(3));
    say(FrameType.execStarted, pid);
    say(FrameType.execStarted, Buffer.alloc(4));
    expect(await command.started).toBe(42);
    say(FrameType.execExit, exitPayload(0));
    expect(await command.started).toBe(42);
  });

  test.each([
    ["cannot be run", () => say(FrameType.execExit, exitPayload(127, 0, 2, "no such program")), "no such program"],
    ["is of a guest that is gone", () => streams.reset("the machine ended"), "the machine ended"],
    ["is of an older agent", () => say(FrameType.execExit, exitPayload(0)), "did not say which process"],
    ["is refused", () => say(FrameType.reset, Buffer.from("too many streams")), "too many streams"],
  ])("that %s rejects", async (_what, happen, why) => {
    const command = streams.run({ args: ["app"] });
    happen();
    await expect(command.started).rejects.toThrow(GuestError);
    await expect(command.started).rejects.toThrow(why);
  });
});

test("numbers are even, and none is used twice", () => {
  for (let count = 0; count < 3; count += 1) {
    streams.run({ args: ["app"] });
    streams.reset("again");
    flow();
  }
  expect(sent.map(({ stream }) => stream)).toEqual([16, 18, 20]);
});

test("what a sleeping machine is told is the last size and every signal once, in their order", () => {
  const command = streams.run({ args: ["app"], terminal: { rows: 24, columns: 80 } });
  streams.hold();
  for (let rows = 1; rows <= 500; rows += 1) {
    command.resize(rows, 80);
    command.signal(10);
    command.signal(12);
  }
  expect(streams.held).toBe(3);
  flow();
  const told = sent.slice(1).map(({ type, payload }) => [type, payload.readUInt16LE()]);
  expect(told).toEqual([
    [FrameType.resize, 500],
    [FrameType.signal, 10],
    [FrameType.signal, 12],
  ]);
});

test("a label that is too long is refused before anything is sent", () => {
  streams.run({ args: ["app"], label: Buffer.alloc(8192) });
  expect(() => streams.run({ args: ["app"], label: Buffer.alloc(8193) })).toThrow(RangeError);
  expect(sent).toHaveLength(1);
});

test("a command that does not fit a frame is refused before anything is sent", () => {
  expect(() => streams.run({ args: ["x".repeat(40_000), "y".repeat(40_000)] })).toThrow(RangeError);
  expect(sent).toEqual([]);
  expect(streams.open).toBe(0);
});
