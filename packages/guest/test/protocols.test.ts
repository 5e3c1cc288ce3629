/** A machine keeps its agent while it sleeps, so the platform must understand the agents of the past. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Duplex, duplexPair } from "node:stream";
import { CURRENT_PROTOCOL, spokenProtocols, unspoken } from "@hibernaut/domain/agent-protocol";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { encodeFrame, FrameReader, FrameType } from "../src/frame.ts";
import { type RecordedFrame, type Recording, tell } from "./protocols/story.ts";

const FOLDER = join(import.meta.dirname, "protocols");
const CONFIG = {
  hostname: "recorded",
  args: ["/app", "--say", "the app speaks"],
  env: { PATH: "/", COLOR: "blue" },
  user: "",
  workdir: "/",
  network: { address: "10.0.2.15/24", gateway: "10.0.2.2", dns: "10.0.2.3", hosts: [] },
  ports: [8080],
  volumes: [],
  swapMb: 8,
};

function recording(protocol: number): Recording {
  return JSON.parse(readFileSync(join(FOLDER, `v${protocol}.json`), "utf8")) as Recording;
}

/** What the platform sends, as far as it is the same every time. */
const asked = ({ type, stream }: Pick<RecordedFrame, "type" | "stream">) => `${type} on ${stream}`;

/** An agent that answers as the recorded one did, at the recorded time of day. Returns what it was asked. */
function replay(channel: Duplex, frames: readonly RecordedFrame[]): string[] {
  const heard: string[] = [];
  const reader = new FrameReader();
  let next = 0;
  const answer = () => {
    for (let frame = frames[next]; frame?.from === "agent"; frame = frames[(next += 1)]) {
      vi.setSystemTime(frame.at);
      channel.write(encodeFrame(frame.type, Buffer.from(frame.payload, "base64"), frame.stream));
    }
  };
  channel.on("data", (chunk: Buffer) => {
    for (const frame of reader.push(chunk)) {
      heard.push(asked(frame));
      next += 1;
      answer();
    }
  });
  answer();
  return heard;
}

describe("the protocols that the platform speaks", () => {
  test("are the current one and the five before it, as far as there were any", () => {
    expect([1, 2, 3, 4, 10].map((current) => spokenProtocols(current))).toEqual([
      [1],
      [1, 2],
      [1, 2, 3],
      [1, 2, 3, 4],
      [5, 6, 7, 8, 9, 10],
    ]);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: -5, max: 1005 }), (current, protocol) => {
        const spoken = protocol >= 1 && protocol <= current && protocol >= current - 5;
        expect(unspoken(protocol, current) === undefined).toBe(spoken);
      }),
    );
    expect(unspoken(1, 7)).toBe("its agent speaks protocol 1, and this version of Hibernaut speaks 2 to 7");
    for (const nonsense of [0, 1.5, Number.NaN, -1]) expect(unspoken(nonsense)).toMatch(/^its agent speaks/);
  });

  test("have all been recorded", () => {
    const files = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));
    expect(files.toSorted()).toEqual(spokenProtocols().map((protocol) => `v${protocol}.json`));
    expect(recording(CURRENT_PROTOCOL).protocol).toBe(CURRENT_PROTOCOL);
  });
});

describe("the platform and the agent that spoke", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterEach(() => void vi.useRealTimers());

  test.each(spokenProtocols())("protocol %i still understand each other", async (protocol) => {
    const { frames, heard } = recording(protocol);
    vi.setSystemTime(frames[0]?.at ?? 0);
    const [ours, theirs] = duplexPair();
    const questions = replay(theirs, frames);
    expect(await tell(ours, CONFIG)).toEqual(heard);
    await expect
      .poll(() => questions, { timeout: 10_000 })
      .toEqual(frames.filter(({ from }) => from === "platform").map(asked));
    expect(questions, "the story goes to its end").toContain(asked({ type: FrameType.stop, stream: 0 }));
    ours.destroy();
  });
});
