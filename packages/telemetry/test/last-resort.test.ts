/** A process that serves others, and errors that nobody expected: a real process, because it is its end that counts. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { EXIT_BROKEN } from "../src/last-resort.ts";

const SRC = join(import.meta.dirname, "../src");

/** Runs the code in a process with a log, and returns its lines, what it printed, and how it ended. */
async function run(code: string) {
  const script = `
    const { background, faultCounts } = await import(${JSON.stringify(join(SRC, "../../lib/src/background.ts"))});
    const { installLastResort } = await import(${JSON.stringify(join(SRC, "last-resort.ts"))});
    const { openLog } = await import(${JSON.stringify(join(SRC, "log.ts"))});
    installLastResort(openLog("info", "json"));
    const later = () => new Promise((resolve) => setTimeout(resolve, 10));
    ${code}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  const lines = stderr.split("\n").filter((line) => line.startsWith("{"));
  return { stdout, lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>), status: status as number };
}

test("rejections that nobody awaited are logged with their stack and counted, and the process keeps running", async () => {
  const { stdout, lines, status } = await run(`
    async function answer() { throw new RangeError("port 0"); }
    for (let count = 0; count < 1000; count += 1) answer();
    background(answer(), "answering a question");
    await later();
    console.log(JSON.stringify(faultCounts()));
  `);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ background: 1, rejection: 1000 });
  expect(lines.map(({ what }) => String(what)).toSorted((a, b) => a.localeCompare(b))).toEqual([
    "a promise that nobody awaited",
    "answering a question",
  ]);
  for (const line of lines)
    expect(line).toMatchObject({
      err: { type: "RangeError", message: "port 0", stack: expect.stringContaining("answer") },
    });
});

test("an exception that nobody caught is logged, and ends the process with a code after which it is started again", async () => {
  const { stdout, lines, status } = await run(`
    setTimeout(() => { throw new Error("halfway"); });
    await later();
    await later();
    console.log("still here");
  `);
  expect(status).toBe(EXIT_BROKEN);
  expect(stdout).toBe("");
  expect(lines).toMatchObject([
    { level: 60, err: { message: "halfway" }, msg: "an error that nobody caught ends this process" },
  ]);
});
