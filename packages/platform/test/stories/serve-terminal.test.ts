/** `hibernaut serve` by hand on a terminal, and with its output in a file: the real command, no machine. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ownPlatform } from "../helpers/platform-process.ts";
import { tempFolder } from "../helpers/temp.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");
const READY = /Hibernaut answers at .*, apps at .*\. Stop it with Ctrl-C\./;
const CTRL_C = "\x03";

/** Runs `serve` until it is ready, interrupts it, and gives back all that came out. */
async function serve(terminal: boolean, more: Record<string, string> = {}): Promise<string> {
  const env = {
    ...process.env,
    ...ownPlatform(await tempFolder()),
    HIBERNAUT_ACCELERATOR: "tcg",
    HIBERNAUT_NETWORK: "user",
    TERM: "xterm",
    ...more,
  };
  // util-linux' own way to give a program a terminal.
  const [program, ...args] = terminal
    ? ["script", "-qefc", `exec "${process.execPath}" "${CLI}" serve`, "/dev/null"]
    : [process.execPath, CLI, "serve"];
  const child = spawn(program ?? "", args, { env });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "close");
  let output = "";
  const ready = Promise.withResolvers<void>();
  const take = (text: string) => {
    output += text;
    if (READY.test(output)) ready.resolve();
  };
  child.stdout.setEncoding("utf8").on("data", take);
  child.stderr.setEncoding("utf8").on("data", take);
  await Promise.race([ready.promise, ended]);
  if (terminal) child.stdin.write(CTRL_C);
  else child.kill("SIGINT");
  const [code] = (await ended) as [number];
  expect(code, output).toBe(0);
  return output;
}

test("on a terminal it says in lines for people what it does, and last where it answers", async () => {
  const lines = (await serve(true, { NO_COLOR: "1" })).split("\r\n").filter((line) => line !== "" && line !== "^C");
  expect(lines.at(-1)).toMatch(READY);
  for (const line of lines.slice(0, -1)) expect(line).toMatch(/^\d\d:\d\d:\d\d (info |warn ) \S/);
  expect(lines.length).toBeGreaterThan(3);
  expect(lines.join("\n")).not.toMatch(/[{}]/);
  expect(await serve(true)).toContain("\u001b[32minfo \u001b[39m");
});

test("elsewhere, and where it is told to, it writes JSON", async () => {
  for (const output of [await serve(false), await serve(true, { HIBERNAUT_LOG_FORMAT: "json" })]) {
    const lines = output.split(/\r?\n/).filter((line) => line !== "" && line !== "^C" && !READY.test(line));
    const levels = lines.map((line) => (JSON.parse(line.replace("^C", "")) as { level: number }).level);
    expect(levels.length).toBeGreaterThan(2);
    expect(levels).toContain(30);
  }
});

test("a misspelled variable causes a warning before anything else", async () => {
  const [line = ""] = (await serve(true, { NO_COLOR: "1", HIBERNAUT_REGOIN: "attic" })).split("\r\n");
  expect(line).toMatch(
    /warn {2}The variable HIBERNAUT_REGOIN is not a setting and has no effect\. Did you mean HIBERNAUT_REGION\?$/,
  );
});
