/** The platform's end of streams against the agent's own C code: `packages/guest/test/streams_peer.c`, over pipes. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { Duplex, type Readable } from "node:stream";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import { GuestAgent } from "../src/agent.ts";
import type { GuestCommand } from "../src/command.ts";
import { STREAM_WINDOW } from "../src/credit.ts";
import { FrameReader, FrameType } from "../src/frame.ts";
import type { KeptCommand } from "../src/protocol.ts";
import { GuestStreams, KeptOffset, MOST_KEPT } from "../src/streams.ts";
import { agentParts, compile } from "./compile.ts";

const PARTS =
  "streams flow command connection outbox frame config spawn hooks user system listening task running processes sockets copy tar connect fs paths entries replace watch";
const asRoot = process.getuid?.() === 0;

const folder = useTempFolder("streams");
let program: string;
beforeAll(async () => {
  program = await compile(folder.path, "streams_peer", ["test/streams_peer.c", ...agentParts(PARTS)]);
}, 60_000);

const soon = () => AbortSignal.timeout(10_000);
const over = new WeakMap<ChildProcess, Promise<unknown>>();

/** Bytes of F_DATA minus what came back as credit, by stream and direction; the most there ever was is kept. */
class CreditWatch {
  readonly #open = new Map<string, number>();
  most = 0;

  see(direction: "in" | "out", bytes: Buffer, reader: FrameReader): void {
    const back = direction === "in" ? "out" : "in";
    for (const { type, stream, payload } of reader.push(bytes)) {
      if (type === FrameType.data || type === FrameType.dataErr) this.#add(`${direction} ${stream}`, payload.length);
      if (type === FrameType.credit) this.#add(`${back} ${stream}`, -payload.readUInt32LE());
    }
  }

  #add(key: string, bytes: number): void {
    const now = (this.#open.get(key) ?? 0) + bytes;
    this.#open.set(key, now);
    this.most = Math.max(this.most, now);
  }
}

/** A guest whose agent is the C code, and the platform's end of it. */
class Peer {
  static #count = 0;
  readonly streams = new GuestStreams();
  readonly credit = new CreditWatch();
  readonly agent: GuestAgent;
  readonly channel: Duplex;
  readonly socket: string;
  readonly #child: ChildProcess;

  constructor() {
    Peer.#count += 1;
    this.socket = join(folder.path, `api-${Peer.#count}`);
    const child = spawn(program, [this.socket], { stdio: ["pipe", "pipe", "inherit"] });
    this.#child = child;
    over.set(child, once(child, "exit"));
    const { stdin, stdout } = child;
    if (stdin === null || stdout === null) throw new Error("the peer has no pipes");
    const readers = { in: new FrameReader(), out: new FrameReader() };
    this.channel = new Duplex({
      allowHalfOpen: true,
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => {
        this.credit.see("out", chunk, readers.out);
        stdin.write(chunk, () => done());
      },
      final: (done) => stdin.end(done),
    });
    stdout.on("data", (chunk: Buffer) => {
      this.credit.see("in", chunk, readers.in);
      this.channel.push(chunk);
    });
    this.agent = new GuestAgent(this.channel, this.streams);
  }

  async open(): Promise<this> {
    await this.agent.hello(soon());
    return this;
  }

  /** A program connects; both of its ends. */
  async connection(): Promise<{ program: Socket; ours: Duplex }> {
    const accepted = Promise.withResolvers<Duplex>();
    this.streams.onConnection = accepted.resolve;
    const made = connect({ path: this.socket, allowHalfOpen: true });
    made.on("error", () => {});
    const ours = await accepted.promise;
    ours.on("error", () => {});
    return { program: made, ours };
  }

  /** As a suspend and a resume do. */
  async sleep(): Promise<void> {
    await this.agent.quiesce(soon());
    await this.agent.awake(soon());
  }

  /** Ends the guest; its exit code, which is not 0 when a sanitizer found something. */
  async close(): Promise<number | null> {
    this.#child.stdin?.end();
    await over.get(this.#child);
    this.agent.close();
    return this.#child.exitCode;
  }
}

/** Every byte shows its position, so that lost, doubled and swapped bytes are all detected. */
function numbered(size: number, salt: number): Buffer {
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; at += 1) bytes[at] = (at * 31 + (at >> 8) * 7 + salt) & 255;
  return bytes;
}

/** Reads all of a stream, in steps that `pauses` interrupt; the bytes may wait, but none may be lost. */
async function readAll(from: Readable, pauses: number[]): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let number = 0;
  // Without this, the end of what is read would also end what is written.
  for await (const chunk of from.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk as Buffer);
    const pause = pauses[number++ % Math.max(1, pauses.length)] ?? 0;
    for (let turn = 0; turn < pause; turn += 1) await new Promise(setImmediate);
  }
  return Buffer.concat(chunks);
}

async function writeAll(to: NodeJS.WritableStream, bytes: Buffer, sizes: number[]): Promise<void> {
  for (let at = 0, number = 0; at < bytes.length; number += 1) {
    const piece = bytes.subarray(at, at + (sizes[number % sizes.length] ?? 1000));
    at += piece.length;
    if (!to.write(piece)) await once(to, "drain");
  }
  to.end();
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const sizes = fc.array(fc.integer({ min: 1, max: 100_000 }), { minLength: 1, maxLength: 5 });
const pauses = fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 5 });
const amount = fc.integer({ min: 0, max: 400_000 });
const transfer = fc.record({ there: amount, back: amount, sizes, pauses, slowProgram: fc.boolean() });

describe("connections over the agent's own code", () => {
  test("no byte is lost, doubled or swapped, whatever reads slowly and however often the machine sleeps", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(transfer, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 0, max: 6 }),
        async (transfers, sleeps) => {
          const peer = await new Peer().open();
          const ends: { program: Socket; ours: Duplex }[] = [];
          for (const _ of transfers) ends.push(await peer.connection());
          const done = Promise.all(
            transfers.map(async ({ there, back, sizes: pieces, pauses: waits, slowProgram }, index) => {
              const { program: inside, ours } = ends[index] as { program: Socket; ours: Duplex };
              const [sent, answered] = [numbered(there, index), numbered(back, index + 100)];
              const [heard, received] = await Promise.all([
                readAll(inside, slowProgram ? waits : []),
                readAll(ours, slowProgram ? [] : waits),
                writeAll(ours, sent, pieces),
                writeAll(inside, answered, pieces),
              ]);
              return heard.equals(sent) && received.equals(answered);
            }),
          );
          for (let count = 0; count < sleeps; count += 1) await peer.sleep();
          expect(await done).toEqual(transfers.map(() => true));
          expect(peer.credit.most).toBeLessThanOrEqual(STREAM_WINDOW);
          await expect.poll(() => peer.streams.open).toBe(0);
          expect(await peer.close()).toBe(0);
        },
      ),
      { numRuns: 25 },
    );
  }, 120_000);

  test("while the machine sleeps a writer waits, what is held is bounded by the credit, and all of it arrives", async () => {
    const peer = await new Peer().open();
    const { program: inside, ours } = await peer.connection();
    await peer.agent.quiesce(soon());
    const sent = numbered(500_000, 1);
    const written = writeAll(ours, sent, [10_000]);
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    expect(peer.streams.held).toBeLessThanOrEqual(STREAM_WINDOW / 10_000 + 1);
    await peer.agent.awake(soon());
    expect((await readAll(inside, [])).equals(sent)).toBe(true);
    await written;
    inside.end();
    ours.resume();
    await expect.poll(() => peer.streams.open).toBe(0);
    expect(await peer.close()).toBe(0);
  });

  test("ends at random: resets of either side leave nothing open and the other streams alone", async () => {
    const peer = await new Peer().open();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("program", "platform", "both", "whole"), { minLength: 2, maxLength: 8 }),
        async (fates) => {
          const whole = await peer.connection();
          for (const fate of fates) {
            const { program: inside, ours } = await peer.connection();
            ours.write(numbered(100_000, 3));
            inside.write(numbered(100_000, 4));
            if (fate === "program" || fate === "both") inside.destroy();
            if (fate === "platform" || fate === "both") ours.destroy();
            if (fate === "whole") {
              inside.end();
              ours.end();
            }
            ours.resume();
            inside.resume();
          }
          const sent = numbered(150_000, 5);
          const [heard] = await Promise.all([readAll(whole.program, []), writeAll(whole.ours, sent, [9999])]);
          expect(heard.equals(sent)).toBe(true);
          whole.program.end();
          whole.ours.resume();
          await expect.poll(() => peer.streams.open, { timeout: 5000 }).toBe(0);
        },
      ),
      { numRuns: 15 },
    );
    expect(await peer.close()).toBe(0);
  }, 60_000);
});

describe.runIf(asRoot)("commands over the agent's own code (root only: they change their user)", () => {
  test("an echo is whole through sleeps, and the end comes after the output", async () => {
    await fc.assert(
      fc.asyncProperty(amount, sizes, pauses, fc.nat(4), async (size, pieces, waits, sleeps) => {
        const peer = await new Peer().open();
        const command = peer.streams.run({ args: ["sh", "-c", "cat; echo end >&2; exit 9"], input: true });
        const sent = numbered(size, 7);
        const done = Promise.all([
          readAll(command.stdout, waits),
          readAll(command.stderr, []),
          writeAll(command.stdin, sent, pieces),
        ]);
        for (let count = 0; count < sleeps; count += 1) await peer.sleep();
        const [out, err] = await done;
        expect(out.equals(sent)).toBe(true);
        expect(err.toString()).toBe("end\n");
        expect(await command.exit).toEqual({ code: 9, signal: 0, timedOut: false, failure: undefined });
        expect(peer.credit.most).toBeLessThanOrEqual(STREAM_WINDOW);
        expect(await peer.close()).toBe(0);
      }),
      { numRuns: 15 },
    );
  }, 60_000);

  test("a command says which process it is, or why it cannot be one", async () => {
    const peer = await new Peer().open();
    const command = peer.streams.run({ args: ["sh", "-c", "echo $$"], login: true, workdir: "/tmp" });
    expect(await command.started).toBe(Number((await readAll(command.stdout, [])).toString()));
    const nowhere = peer.streams.run({ args: ["sh"], login: true, workdir: "/no/such" });
    await expect(nowhere.started).rejects.toThrow("cwd '/no/such' does not exist");
    expect(await peer.close()).toBe(0);
  });

  test("a kept command continues under the next platform, and what nobody wants there is killed", async () => {
    const peer = await new Peer().open();
    await peer.agent.awake(soon());
    const label = Buffer.from([0, 255, 10, ...Buffer.from("mine")]);
    const command = peer.streams.run({ args: ["sh", "-c", "cat; exit 4"], input: true, label });
    const unwanted = peer.streams.run({ args: ["sleep", "1000"], label: Buffer.alloc(0) });
    const [pid, unwantedPid] = await Promise.all([command.started, unwanted.started]);
    command.stdin.write("for the first");
    await once(command.stdout, "data");
    for (const how of ["hello", "awake"] as const) {
      const streams = new GuestStreams();
      const kept: [GuestCommand, Buffer, KeptCommand][] = [];
      const kill = streams.onKept;
      streams.onKept = (found, said, about) => {
        if (said.length === 0) kill(found, said, about);
        else kept.push([found, said, about]);
      };
      const next = new GuestAgent(peer.channel, streams);
      await next[how](soon());
      const [found, said, about] = kept[0] ?? [];
      expect([kept.length, said, about]).toEqual([1, label, { terminal: false, input: true }]);
      expect(await found?.started).toBe(pid);
      found?.stdin.write(`for ${how}`);
      expect((await once(found?.stdout as Readable, "data"))[0].toString()).toBe(`for ${how}`);
      await expect.poll(() => isAlive(unwantedPid)).toBe(false);
      expect(streams.run({ args: ["true"] }).kept).toBe(false);
      if (how === "hello") continue;
      found?.stdin.end();
      expect(await found?.exit).toMatchObject({ code: 4 });
      await expect.poll(() => streams.open).toBe(0);
    }
    expect(await peer.close()).toBe(0);
  });

  test("however much of a kept command's input waits, none that the next platform sends is lost", async () => {
    const peer = await new Peer().open();
    await peer.agent.awake(soon());
    const first = numbered(STREAM_WINDOW, 3);
    const script = "read go < /dev/null; sleep 0.3; exec cat";
    peer.streams.run({ args: ["sh", "-c", script], input: true, label: Buffer.from("x") }).stdin.write(first);
    const full = peer.streams.run({ args: ["sh", "-c", script], input: true, label: Buffer.from("y") });
    full.stdin.write(Buffer.concat([first, first]));
    await full.started;
    peer.streams.reset("the platform ended");
    const streams = new GuestStreams();
    const second = numbered(200_000, 9);
    const heard: Promise<Buffer>[] = [];
    streams.onKept = (command) => {
      heard.push(readAll(command.stdout, [2]));
      void writeAll(command.stdin, second, [30_000]);
    };
    await new GuestAgent(peer.channel, streams).hello(soon());
    for (const all of await Promise.all(heard)) {
      expect(all.length % STREAM_WINDOW).toBe(second.length % STREAM_WINDOW);
      expect(all.subarray(-second.length).equals(second)).toBe(true);
    }
    expect(heard).toHaveLength(2);
    expect(await peer.close()).toBe(0);
  });

  test("a file that is written to the end appears, and one whose writer goes away never does", async () => {
    const peer = await new Peer().open();
    const path = join(folder.path, "written");
    const write = (user = "65000") => peer.streams.run({ args: [path], task: "fs-write", input: true, user });
    const whole = write();
    const content = numbered(300_000, 1);
    const [out] = await Promise.all([readAll(whole.stdout, []), writeAll(whole.stdin, content, [20_000])]);
    expect(await whole.exit).toMatchObject({ code: 0 });
    expect(out.toString().split("\0").slice(0, 4)).toEqual(["file", "300000", "644", "65000"]);
    const isOurs = (name: string) => name === "written" || name.startsWith(".hibernaut-");
    const names = async () => (await readdir(folder.path)).filter(isOurs).length;
    for (const size of [0, 10, STREAM_WINDOW]) {
      const cut = write();
      if (size > 0) cut.stdin.write(numbered(size, 2));
      await expect.poll(names).toBe(2);
      cut.kill();
      await expect.poll(names).toBe(1);
      expect((await readFile(path)).equals(content)).toBe(true);
    }
    const unknown = write("no-such-user");
    expect([await text(unknown.stderr), (await unknown.exit).code]).toEqual([
      "user 'no-such-user' does not exist\n",
      8,
    ]);
    expect(await peer.close()).toBe(0);
  });

  test("both outputs of a command share the credit, and neither runs dry", async () => {
    const peer = await new Peer().open();
    const both = "head -c 300000 /dev/zero & head -c 300000 /dev/zero >&2; wait";
    const command = peer.streams.run({ args: ["sh", "-c", both] });
    const [out, err] = await Promise.all([readAll(command.stdout, [3]), readAll(command.stderr, [5])]);
    expect([out.length, err.length]).toEqual([300_000, 300_000]);
    expect(await command.exit).toMatchObject({ code: 0 });
    expect(await peer.close()).toBe(0);
  });

  test("another platform's session ends the streams of the one before", async () => {
    const peer = await new Peer().open();
    await peer.agent.awake(soon()); // the guest knows this session from here on
    const { ours, program: inside } = await peer.connection();
    const command = peer.streams.run({ args: ["sh", "-c", "echo $$; exec sleep 1000"] });
    const [pid] = (await once(command.stdout, "data")) as [Buffer];
    peer.streams.reset("the platform ended");
    await expect(command.exit).rejects.toThrow("the platform ended");
    const ended = once(inside.resume(), "end");
    const next = new GuestAgent(peer.channel, new GuestStreams());
    await next.awake(soon());
    await ended;
    expect(ours.destroyed).toBe(true);
    await expect.poll(() => isAlive(Number(pid))).toBe(false);
    // The numbers begin again, and nothing of the old streams comes through.
    const again = next.streams.run({ args: ["echo", "new"] });
    expect((await readAll(again.stdout, [])).toString()).toBe("new\n");
    inside.destroy();
    expect(await peer.close()).toBe(0);
  });
});

describe("a guest that keeps to nothing", () => {
  const frame = fc.record({
    type: fc.oneof(
      fc.constantFrom(...Object.values(FrameType)),
      fc.constantFrom(FrameType.accept, FrameType.data, FrameType.dataErr, FrameType.execExit, FrameType.end),
      fc.integer({ min: 0, max: 255 }),
    ),
    stream: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 0xffffffff })),
    payload: fc
      .oneof({ weight: 5, arbitrary: fc.uint8Array({ maxLength: 12 }) }, fc.constant(new Uint8Array(60_000)))
      .map((bytes) => Buffer.from(bytes)),
  });

  test("no frame throws, and what is kept for it stays bounded", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 200 }), fc.boolean(), async (frames, reachable) => {
        const streams = new GuestStreams();
        if (reachable) streams.flow(() => {});
        const faults: unknown[] = [];
        streams.onConnection = (connection) => connection.on("error", () => {});
        const commands = Array.from({ length: 4 }, () => streams.run({ args: ["app"], input: true }));
        for (const command of commands)
          for (const stream of [command.stdin, command.stdout, command.stderr])
            stream.on("error", (error) => faults.push(error));
        const heldBefore = streams.held;
        for (const next of frames) streams.receive(next);
        await new Promise(setImmediate);
        expect(streams.held - heldBefore).toBeLessThan(50);
        expect(streams.open).toBeLessThanOrEqual(128 + commands.length);
        const kept = commands.map(({ stdout, stderr }) => stdout.readableLength + stderr.readableLength);
        // Of each output: what a reader that is ahead keeps, and a window.
        expect(Math.max(...kept)).toBeLessThanOrEqual(2 * 2 * STREAM_WINDOW);
        streams.reset("over");
        await Promise.allSettled(commands.map((command) => command.exit));
        await new Promise(setImmediate);
        expect(faults).toEqual([]);
        expect(streams.open).toBe(0);
      }),
      { numRuns: 300 },
    );
  }, 60_000);

  test("more than its credit ends the stream, and only that", async () => {
    const streams = new GuestStreams();
    const sent: [number, string, number][] = [];
    streams.flow((type, payload, stream) => sent.push([type, Buffer.from(payload).toString(), stream]));
    const [command, other] = [streams.run({ args: ["a"] }), streams.run({ args: ["b"] })];
    const broken = new Promise((resolve) => {
      streams.onConnection = (connection) => connection.on("error", resolve);
    });
    for (let count = 0; count < 5; count += 1) {
      streams.receive({ type: FrameType.data, stream: 16, payload: Buffer.alloc(30_000) });
      if (count === 0) streams.receive({ type: FrameType.accept, stream: 17, payload: Buffer.alloc(0) });
      streams.receive({ type: FrameType.data, stream: 17, payload: Buffer.alloc(30_000) });
    }
    await expect(command.exit).rejects.toThrow("more was sent than the credit allowed");
    expect(String(await broken)).toContain("more was sent than the credit allowed");
    expect(sent.filter(([type]) => type === FrameType.reset).map(([, , stream]) => stream)).toContain(16);
    expect(streams.open).toBe(1);
    streams.receive({ type: FrameType.execExit, stream: 18, payload: Buffer.alloc(9) });
    expect(await other.exit).toMatchObject({ code: 0 });
  });

  test("credit that it invents gets it no more than a window", () => {
    const streams = new GuestStreams();
    let sent = 0;
    streams.flow((type, payload) => {
      if (type === FrameType.data) sent += payload.length;
    });
    const { stdin } = streams.run({ args: ["a"], input: true });
    const endless = Buffer.alloc(4, 0xff);
    for (let count = 0; count < 3; count += 1)
      streams.receive({ type: FrameType.credit, stream: 16, payload: endless });
    stdin.write(Buffer.alloc(10 * STREAM_WINDOW));
    expect(sent).toBe(STREAM_WINDOW);
  });

  test("its connections are bounded, and their numbers cannot take a command's place", async () => {
    const streams = new GuestStreams();
    const resets: number[] = [];
    streams.flow((type, _payload, stream) => {
      if (type === FrameType.reset) resets.push(stream);
    });
    streams.onConnection = () => {};
    const command = streams.run({ args: ["a"] });
    streams.receive({ type: FrameType.accept, stream: 16, payload: Buffer.alloc(0) });
    for (let id = 17; id < 17 + 2 * 200; id += 2)
      streams.receive({ type: FrameType.accept, stream: id, payload: Buffer.alloc(0) });
    expect(streams.open).toBe(1 + 128);
    expect(resets).toHaveLength(200 - 128);
    streams.receive({ type: FrameType.execExit, stream: 16, payload: Buffer.alloc(9) });
    expect(await command.exit).toMatchObject({ code: 0 });
  });
});

describe("kept commands, as a guest announces them", () => {
  const announcement = (session: Buffer, { pid = 7, flags = 3, waiting = 0, label = "label" } = {}) => {
    const head = Buffer.alloc(KeptOffset.session);
    head.writeUInt32LE(pid, KeptOffset.pid);
    head.writeUInt8(flags, KeptOffset.flags);
    head.writeUInt32LE(waiting, KeptOffset.waiting);
    return Buffer.concat([head, session, Buffer.from(label)]);
  };
  let streams: GuestStreams;
  let found: { command: GuestCommand; label: Buffer; about: KeptCommand }[];
  beforeEach(() => {
    streams = new GuestStreams();
    found = [];
    streams.onKept = (command, label, about) => found.push({ command, label, about });
  });
  const say = (stream: number, payload = announcement(streams.session)) =>
    streams.receive({ type: FrameType.kept, stream, payload });

  test("are commands with their number, and later ones have higher numbers", async () => {
    const sent: number[] = [];
    expect(say(40)).toBe(true);
    expect(found).toMatchObject([{ label: Buffer.from("label"), about: { terminal: true, input: true } }]);
    expect(await found[0]?.command.started).toBe(7);
    streams.run({ args: ["a"] });
    streams.flow((_type, _payload, stream) => sent.push(stream));
    expect(sent).toEqual([42]);
    streams.receive({ type: FrameType.execExit, stream: 40, payload: Buffer.alloc(9) });
    expect(await found[0]?.command.exit).toMatchObject({ code: 0 });
  });

  test("are ignored with a wrong number, of another session, cut short, or in place of another stream", () => {
    const command = streams.run({ args: ["a"] });
    for (const wrong of [0, 14, 17, 0x8000_0000, 0xffff_fffe]) say(wrong);
    say(18, announcement(Buffer.alloc(8, 1)));
    say(18, announcement(streams.session, { label: "" }).subarray(0, -1));
    say(16);
    expect([found, streams.open, command.kept]).toEqual([[], 1, false]);
    for (let id = 18; id < 18 + 2 * 200; id += 2) say(id);
    expect(streams.open).toBe(1 + MOST_KEPT);
  });

  test("get no more input than their agent has room for", () => {
    let sent = 0;
    say(16, announcement(streams.session, { waiting: STREAM_WINDOW - 10 }));
    say(18, announcement(streams.session, { waiting: 0xffff_ffff }));
    streams.flow((type, payload) => {
      if (type === FrameType.data) sent += payload.length;
    });
    for (const { command } of found) command.stdin.write(Buffer.alloc(1000));
    expect(sent).toBe(10);
  });

  test("frames from before the announcement are ignored, and nothing answers them", () => {
    const sent: number[] = [];
    streams.receive({ type: FrameType.data, stream: 16, payload: Buffer.from("old") });
    streams.receive({ type: FrameType.credit, stream: 16, payload: Buffer.alloc(4, 1) });
    say(16);
    streams.flow((type) => sent.push(type));
    expect(sent).toEqual([]);
    expect(found[0]?.command.stdout.readableLength).toBe(0);
  });

  test("are killed unless someone wants them", () => {
    const strict = new GuestStreams();
    const sent: [number, number][] = [];
    strict.receive({ type: FrameType.kept, stream: 20, payload: announcement(strict.session) });
    strict.flow((type, _payload, stream) => sent.push([type, stream]));
    expect(sent).toEqual([[FrameType.reset, 20]]);
    expect(strict.open).toBe(0);
  });
});

test("frames for streams that ended are answered with a reset while the guest can be reached, and only then", () => {
  const streams = new GuestStreams();
  const sent: number[] = [];
  const late = () => streams.receive({ type: FrameType.data, stream: 20, payload: Buffer.from("late") });
  late();
  expect(streams.held).toBe(0);
  streams.flow((type) => sent.push(type));
  late();
  expect(sent).toEqual([FrameType.reset]);
});
