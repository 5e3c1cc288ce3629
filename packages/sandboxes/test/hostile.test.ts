/** Guests and clients that do their worst: none of it ends the platform, fills it, or stops another. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import { gzipSync } from "node:zlib";
import type { CommandExit, CommandSpec, GuestCommand } from "@hibernaut/guest";
import { expect, onTestFinished, test } from "vitest";
import { failureOf } from "../src/failure.ts";
import { SandboxGuest } from "../src/inside/guest.ts";
import type { Inside } from "../src/inside/inside.ts";
import { Process, type ProcessMessage } from "../src/inside/process.ts";
import { transfer } from "../src/inside/transfer.ts";
import { WatchReader } from "../src/inside/watch-reader.ts";

/** A command as a guest carries it out: the test says what. */
function command() {
  const exit = Promise.withResolvers<CommandExit>();
  exit.promise.catch(() => {});
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  let killed = 0;
  const end = (code = 0) => {
    stdout.end();
    stderr.end();
    exit.resolve({ code, signal: 0, timedOut: false, failure: undefined });
  };
  const kill = () => {
    killed += 1;
    end(1);
  };
  const fake = {
    stdin,
    stdout,
    stderr,
    exit: exit.promise,
    started: Promise.resolve(7),
    kill,
    signal() {},
    resize() {},
  };
  return { stdin, stdout, stderr, end, killed: () => killed, command: fake as unknown as GuestCommand };
}

const LABEL = { cmd: "x", args: [], envs: {}, terminal: false, stdin: true };

async function all(messages: AsyncIterable<ProcessMessage>): Promise<string> {
  let text = "";
  for await (const message of messages) text += message.kind === "end" ? "END" : message.bytes.toString();
  return text;
}

test("a program that prints and ends at once is heard, by one who asks in time and by one who is late", async () => {
  const fake = command();
  const program = new Process(fake.command, 7, LABEL, () => {});
  const early = program.follow(new AbortController().signal);
  fake.stdout.write("quick");
  fake.end();
  await new Promise((resolve) => setImmediate(resolve));
  expect(await all(early)).toBe("quickEND");
  expect(await all(program.follow(new AbortController().signal))).toBe("END");
});

test("a client that reads nothing and goes leaves the program running for the others", async () => {
  const fake = command();
  const program = new Process(fake.command, 7, LABEL, () => {});
  const gone = new AbortController();
  const slow = program.follow(gone.signal);
  await Promise.all([slow.next(), Promise.resolve(fake.stdout.write("first "))]);
  for (let number = 0; number < 40; number += 1) fake.stdout.write(Buffer.alloc(64 * 1024, 46));
  await expect.poll(() => fake.stdout.isPaused()).toBe(true);
  gone.abort();
  await expect.poll(() => fake.stdout.readableLength).toBe(0);
  const other = program.follow(new AbortController().signal);
  fake.stdout.write("last");
  fake.end();
  expect(await all(other)).toBe("lastEND");
});

test("input that a program does not read is bounded, and refused once the program has ended", async () => {
  const fake = command();
  fake.stdin.cork();
  const program = new Process(fake.command, 7, LABEL, () => {});
  const writes = [1, 2, 3].map(() => program.write(Buffer.alloc(1024 * 1024)).catch(failureOf));
  expect(await writes[2]).toMatchObject({ code: 429 });
  fake.end();
  expect(await Promise.all(writes.slice(0, 2))).toMatchObject([{ code: 404 }, { code: 404 }]);
});

test("a watch that says nonsense byte by byte ends, and takes no time for it", async () => {
  const output = new PassThrough();
  const reader = new WatchReader(output);
  output.write("start\0");
  expect(await reader.start()).toBe(true);
  output.write(
    ["create", "a", "1", "file", "1", "644", "u", "g", "1", "/a", "", "99999999"].map((one) => `${one}\0`).join(""),
  );
  for (let number = 0; number < 2000; number += 1) output.write("\0");
  for await (const event of reader.events()) expect.unreachable(`heard ${event.bytes} bytes`);
});

/** A server whose sandbox carries out each task as `run` says. Returns what it answers. */
async function sandbox(run: (spec: CommandSpec) => GuestCommand) {
  const guest = new SandboxGuest(run);
  const server = createServer((request, response) => {
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("gone")));
    const inside = { guest, view: { record: {} }, named: "user", signal: gone.signal } as unknown as Inside;
    transfer(inside, request, response).catch((error: unknown) => {
      const { code, message } = failureOf(error);
      response.writeHead(code).end(message);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return (path: string, init: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init);
}

test("uploads that are not what they say are refused, wherever they go wrong", async () => {
  const ask = await sandbox(() => {
    const fake = command();
    fake.stdin.resume().on("end", () => fake.end(0));
    return fake.command;
  });
  const zipped = { "Content-Encoding": "gzip", "Content-Type": "application/octet-stream" };
  const post = (path: string, headers: Record<string, string>, body: string | Buffer) =>
    ask(path, { method: "POST", headers, body }).then(({ status }) => status);
  expect(await post("/files", zipped, "this is not gzip")).toBe(400);
  expect(await post("/files?path=a", { ...zipped, "Content-Type": "multipart/form-data" }, "neither")).toBe(400);
  expect(await post("/files?path=a", zipped, "this is not gzip")).toBeGreaterThanOrEqual(400);
  const form = { "Content-Type": "multipart/form-data; boundary=x" };
  const part = '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf';
  expect(await post("/files", form, part)).toBe(400);
  expect(await post("/files", form, part.replace('; filename="a"', ""))).toBe(400);
  expect(await post("/files", { ...form, "Content-Encoding": "gzip" }, gzipSync(part))).toBe(400);
});

test("a guest that never stops talking is ended, and one that never answers is when its client goes", async () => {
  const talker = command();
  const ask = await sandbox(() => talker.command);
  const chunk = Buffer.alloc(64 * 1024);
  for (let number = 0; number < 8; number += 1) talker.stdout.write(chunk);
  expect((await ask("/files?path=a", { method: "POST", body: "x" })).status).toBe(502);
  expect(talker.killed()).toBeGreaterThan(0);

  const silent = command();
  const other = await sandbox(() => silent.command);
  await expect(other("/files?path=a", { signal: AbortSignal.timeout(200) })).rejects.toThrow();
  await expect.poll(() => silent.killed()).toBe(1);
});
