import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import { encodeFrame, FrameReader, FrameType, MAX_PAYLOAD } from "../src/frame.ts";
import { agentParts, compile } from "./compile.ts";

const run = promisify(execFile);

const folder = useTempFolder("agent");

/** How many rounds the fuzz with random frames does. */
const FUZZ_ROUNDS = longOr("200000", "10000");

/** The parts of the agent that streams need. */
const STREAMS =
  "streams flow command connection outbox frame config spawn hooks user system listening task running processes sockets copy tar connect fs paths entries replace watch";

test.each([
  [
    "frames, configuration, files, swap, users and ports",
    "agent_test",
    "frame config files swap user system listening",
    [],
  ],
  ["streams: connections, commands and their ends", "streams_test", STREAMS, []],
  ["streams and the outbox under random frames", "streams_fuzz", STREAMS, []],
  [
    "clock and randomness after a resume",
    "awake_test",
    `files swap volumes app ${STREAMS}`,
    ["-Wl,--wrap=ioctl,--wrap=clock_settime"],
  ],
] as const)(
  "the agent's own tests pass under the sanitizers: %s",
  async (_what, name, parts, linkFlags) => {
    const bench = name.startsWith("streams") ? ["test/streams_bench.c"] : [];
    const files = [`test/${name}.c`, ...bench, ...agentParts(parts)];
    const program = await compile(folder.path, name, files, { linkFlags });
    // A leak is found at the very end, and only the exit code reports it.
    const env = { ...process.env, TMPDIR: folder.path };
    const result = await run(program, name === "streams_fuzz" ? [FUZZ_ROUNDS] : [], { timeout: 50_000, env }).catch(
      (error: unknown) => error as { stdout: string; stderr: string; code: number },
    );
    const output = result.stderr + result.stdout;
    expect(output).not.toMatch(/^FAIL/m);
    expect(output).toMatch(/\nall passed\n$/);
    expect(result).not.toHaveProperty("code");
    for (const line of output.match(/^skip .*/gm) ?? []) console.warn(line);
  },
  60_000,
);

const ECHO = ["test/frame_echo.c", "agent/frame.c"];

/** The frames that the C side finds in a stream of bytes, as bytes. */
async function echo(program: string, chunks: Buffer[], most: number): Promise<Buffer> {
  const child = spawn(program, [String(most)], { stdio: ["pipe", "pipe", "pipe"], timeout: 20_000 });
  const out: Buffer[] = [];
  let errors = "";
  child.stdout.on("data", (bytes: Buffer) => out.push(bytes));
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  for (const chunk of chunks) child.stdin.write(chunk);
  child.stdin.end();
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`frame_echo ended with ${code}: ${errors}`);
  return Buffer.concat(out);
}

const frame = fc
  .tuple(
    fc.integer({ min: 0, max: 255 }),
    fc.oneof(
      { weight: 9, arbitrary: fc.uint8Array({ maxLength: 400 }) },
      { weight: 1, arbitrary: fc.constant(Buffer.alloc(MAX_PAYLOAD, "HBN1")) },
    ),
    fc.integer({ min: 0, max: 0xffffffff }),
  )
  .map(([type, payload, stream]) => encodeFrame(type, payload, stream));
const noise = fc.oneof(
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom("H", "HB", "HBN", "HBN1", "HBNHBN1", "HBN1\0\0\0\0", "HBN1HBN1").map((text) => Buffer.from(text)),
);
const cutFrame = fc.tuple(frame, fc.nat(500)).map(([bytes, cut]) => bytes.subarray(0, cut));
const brokenFrame = fc.tuple(frame, fc.nat(500), fc.integer({ min: 1, max: 255 })).map(([bytes, at, change]) => {
  const broken = Buffer.from(bytes);
  const place = at % broken.length;
  broken[place] = (broken[place] ?? 0) ^ change;
  return broken;
});

test("both sides find the same frames, whatever is between them and however they are cut", async () => {
  const program = await compile(folder.path, "frame_echo", ECHO);
  const parts = fc.array(fc.oneof({ weight: 4, arbitrary: frame }, noise, cutFrame, brokenFrame), { maxLength: 15 });
  const sizes = fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 10 });
  const most = fc.constantFrom(1, 7, 4096, 32_768, 1_000_000);
  await fc.assert(
    fc.asyncProperty(parts, sizes, most, async (sent, pieces, mostAtOnce) => {
      const bytes = Buffer.concat([...sent, encodeFrame(FrameType.pad, Buffer.alloc(MAX_PAYLOAD))]);
      const chunks: Buffer[] = [];
      for (let at = 0; at < bytes.length; at += chunks.at(-1)?.length ?? 1) {
        chunks.push(bytes.subarray(at, at + (pieces[chunks.length % pieces.length] ?? 1)));
      }
      const reader = new FrameReader();
      const here = chunks
        .flatMap((chunk) => reader.push(chunk))
        .map((found) => encodeFrame(found.type, found.payload, found.stream));
      const there = await echo(program, chunks, mostAtOnce);
      expect(there.equals(Buffer.concat(here))).toBe(true);
    }),
    { numRuns: longOr(150, 50) },
  );
}, 60_000);

test("each side reads the frames of the other", async () => {
  const program = await compile(folder.path, "frame_echo_plain", ECHO, { flags: ["-O2"] });
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { minLength: 1, maxLength: 20 }), async (frames) => {
      const back = await echo(program, frames, 1_000_000);
      expect(back.equals(Buffer.concat(frames))).toBe(true); // The C writer writes the same bytes as the TypeScript writer.
      const reader = new FrameReader();
      expect(reader.push(back)).toHaveLength(frames.length);
      expect(reader.skipped).toBe(0);
    }),
    { numRuns: 100 },
  );
}, 60_000);
