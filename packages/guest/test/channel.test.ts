import { type Duplex, duplexPair } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { GuestAgent } from "../src/agent.ts";
import { encodeFrame, type Frame, FrameReader, FrameType } from "../src/frame.ts";
import { HelloOffset } from "../src/hello.ts";
import type { GuestConfig } from "../src/protocol.ts";
import { decodeRecords, Key, nanoseconds } from "../src/records.ts";

const CONFIG: GuestConfig = {
  hostname: "m",
  args: ["app"],
  env: {},
  user: "",
  workdir: "/",
  network: { address: "10.0.2.15/24", gateway: "10.0.2.2", dns: "10.0.2.3", hosts: [] },
  ports: [],
  volumes: [],
};
const soon = () => AbortSignal.timeout(2000);

let agent: GuestAgent;
let guest: Duplex;
let received: Frame[];

beforeEach(() => {
  const [ours, theirs] = duplexPair();
  agent = new GuestAgent(ours);
  guest = theirs;
  guest.on("error", () => {});
  received = [];
  const reader = new FrameReader();
  guest.on("data", (chunk: Buffer) => received.push(...reader.push(chunk)));
});
afterEach(() => {
  agent.close();
  guest.destroy();
});

const say = (type: number, payload?: Buffer, stream = 0) => guest.write(encodeFrame(type, payload, stream));
const types = () => received.map(({ type }) => type);

describe("the platform's end of the agent channel", () => {
  test("a configuration larger than a frame arrives whole, in several", async () => {
    const env = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`NAME_${index}`, "v".repeat(10_000)]));
    const running = agent.run({ ...CONFIG, env }, soon());
    await expect.poll(types).toContain(FrameType.run);
    expect(types().filter((type) => type === FrameType.set).length).toBeGreaterThan(5);
    const bytes = Buffer.concat(received.filter(({ type }) => type === FrameType.set).map(({ payload }) => payload));
    expect(bytes.toString().match(/NAME_\d+=v/g)).toHaveLength(40);
    say(FrameType.started, Buffer.alloc(4));
    await running;
  });

  test("a wake says what carries connections to apps now, to machines of a network alone", async () => {
    const said = async (wake: Parameters<GuestAgent["awake"]>[1]) => {
      received = [];
      const waking = agent.awake(soon(), wake);
      await expect.poll(types).toEqual([FrameType.awake]);
      say(FrameType.awoken, Buffer.concat([nanoseconds(Date.now()), Buffer.of(0)]));
      await waking;
      return received[0]?.payload.subarray(80) ?? Buffer.of();
    };
    const apps = Buffer.from("000012c60000feff", "hex"); // 198.18.0.0/15, little endian
    const nothing = Buffer.alloc(8);
    expect(await said({})).toEqual(Buffer.of());
    expect(await said({ stoodMs: 1 })).toEqual(nanoseconds(1));
    const { carrier } = agent.streams;
    expect(await said({ carried: "outward" })).toEqual(Buffer.concat([nothing, carrier, apps, Buffer.of(0)]));
    agent.streams.disconnect();
    const next = agent.streams.carrier;
    expect(next).not.toEqual(carrier);
    expect(await said({ stoodMs: 1, carried: "both" })).toEqual(
      Buffer.concat([nanoseconds(1), next, apps, Buffer.of(1)]),
    );
  });

  test("a clock that is off is set by the time of the next message, and by nothing that the machine says itself", async () => {
    const waking = agent.awake(soon(), { stoodMs: 1000, carried: "both" });
    const said = () => received.filter(({ type }) => type === FrameType.awake).map(({ payload }) => payload.length);
    await expect.poll(said).toEqual([105]);
    say(FrameType.awoken, Buffer.concat([nanoseconds(Date.now() + 300), Buffer.of(0)]));
    await expect.poll(said).toEqual([105, 80]);
    say(FrameType.awoken, Buffer.concat([nanoseconds(Date.now()), Buffer.of(0)]));
    await waking;
  });

  test("a fork is told who it is, and what it answers decides whether it may run", async () => {
    const { hostname, env, network } = CONFIG;
    const identity = { hostname, network, env: { ...env, SECRET: "s" }, mac: "02:68:00:00:00:01" };
    const told = () => received.flatMap(({ type, payload }) => (type === FrameType.set ? decodeRecords(payload) : []));
    const becoming = agent.become(identity, soon());
    await expect.poll(types).toEqual([FrameType.set, FrameType.become]);
    const values = new Map(told().map(([key, value]) => [key, value.toString("latin1")]));
    expect(values.get(Key.mac)).toBe(identity.mac);
    expect(values.get(Key.env)).toBe("SECRET=s");
    expect(values.get(Key.entropy)?.length).toBe(64);
    say(FrameType.became, Buffer.from([0, 0, 0, 0, 1]));
    expect(await becoming).toEqual({ hooks: true });
    const refused = agent.become(identity, soon());
    say(FrameType.became, Buffer.from("\x02\0\0\0\0randomness could not be renewed: No such file"));
    await expect(refused).rejects.toThrow("randomness could not be renewed");
    const entropy = told().flatMap(([key, value]) => (key === Key.entropy ? [value.toString("hex")] : []));
    expect(new Set(entropy).size).toBe(2);
  });

  test.each([
    [2, []],
    [3, [512]],
  ])("an agent that speaks protocol %i is asked for swap of %j MB", async (protocol, sizes) => {
    const hello = agent.hello(soon());
    const payload = Buffer.alloc(HelloOffset.version);
    payload.writeUInt32LE(protocol, HelloOffset.protocol);
    say(FrameType.hello, payload);
    await hello;
    const running = agent.run({ ...CONFIG, swapMb: 512 }, soon());
    await expect.poll(types).toContain(FrameType.run);
    const records = received
      .filter(({ type }) => type === FrameType.set)
      .flatMap((frame) => decodeRecords(frame.payload));
    const asked = records.filter(([key]) => key === Key.swap).map(([, value]) => value.readUInt32LE());
    expect(asked).toEqual(sizes);
    say(FrameType.started, Buffer.alloc(4));
    await running;
  });

  test("an app that cannot be started is an error with the agent's words", async () => {
    const running = agent.run(CONFIG, soon());
    say(FrameType.startFailed, Buffer.concat([Buffer.alloc(4), Buffer.from("no such file")]));
    await expect(running).rejects.toThrow("no such file");
    expect(agent.startFailure).toBe("no such file");
  });

  test("an agent of another protocol is refused", async () => {
    const hello = agent.hello(soon());
    say(FrameType.hello, Buffer.alloc(28, 9));
    await expect(hello).rejects.toThrow(/speaks protocol 151587081, and this version of Hibernaut speaks 1 to 6/);
  });

  test("waiting calls are told when the channel ends, and so are later ones", async () => {
    const pending = agent.ping(soon());
    const ready = agent.ready(soon());
    guest.end();
    await expect(pending).rejects.toThrow(/closed/);
    await expect(ready).rejects.toThrow(/closed/);
    await expect(agent.quiesce(soon())).rejects.toThrow(/closed/);
  });

  test("an answer that comes too late is nobody's: the next question gets its own", async () => {
    const gaveUp = new AbortController();
    const first = agent.ping(gaveUp.signal, Buffer.from("first"));
    gaveUp.abort(new Error("never mind"));
    await expect(first).rejects.toThrow("never mind");
    const ready = agent.ready(soon());
    say(FrameType.ready);
    await ready;
  });

  test("output, ends and refusals reach their listeners between answers and noise", async () => {
    const log: string[] = [];
    agent.onLog = (stream, data) => log.push(`${stream}:${data.toString()}`);
    const errors: string[] = [];
    agent.onError = (message) => errors.push(message);
    const exit = new Promise((resolve) => {
      agent.onExit = resolve;
    });
    say(FrameType.log, Buffer.from("out"), 1);
    guest.write(Buffer.from("noise HBN HBN1 noise"));
    say(FrameType.log, Buffer.from("err"), 2);
    say(FrameType.error, Buffer.from("unknown frame type"));
    const payload = Buffer.alloc(9);
    payload.writeUInt32LE(9, 4);
    payload[8] = 1;
    say(FrameType.exit, payload);
    expect(await exit).toEqual({ code: 0, signal: 9, oom: true });
    expect(log).toEqual(["1:out", "2:err"]);
    expect(errors).toEqual(["unknown frame type"]);
  });
});
