/**
 * `--watch`: on a terminal, in a pipe and for programs, until Ctrl-C.
 *
 * @module-tag again
 */
import type { ChildProcess } from "node:child_process";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { changeKey, frame, repeat } from "../src/live.ts";
import { useCli } from "./helpers.ts";

const CTRL_C = "\x03";

describe("a frame", () => {
  test("covers the one before, line by line", () => {
    expect(frame("one\ntwo", { columns: 80, rows: 24 })).toBe("\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J");
  });

  test("is cut to the window, and says so", () => {
    const text = ["a".repeat(25), "b", "c", "d"].join("\n");
    const lines = frame(text, { columns: 20, rows: 4 }).slice("\x1b[H".length).split("\x1b[K\n");
    expect(lines).toEqual([`${"a".repeat(19)}…`, "b", "… and 2 more lines", "\x1b[J"]);
    expect(frame("x\ny", { columns: 80, rows: 1 })).toContain("… and 2 more lines");
  });
});

test("a check that finds the same again is not a change, and another verdict is", () => {
  const machine = (status: string, at: string) => [
    { id: "1", checks: [{ name: "web", status, output: at, updated_at: at }] },
  ];
  expect(changeKey(machine("passing", "10:00"))).toBe(changeKey(machine("passing", "10:01")));
  expect(changeKey(machine("passing", "10:00"))).not.toBe(changeKey(machine("critical", "10:00")));
});

test("a platform that is restarted is waited for, and any other failure ends the watch", async () => {
  const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const failing = (code: string) => Promise.reject(Object.assign(new Error("No answer."), { code }));
  const looks = [
    () => Promise.resolve({ document: 1, text: "" }),
    () => failing("unavailable"),
    () => failing("unavailable"),
    () => Promise.resolve({ document: 2, text: "" }),
    () => failing("not_found"),
  ];
  const shown: unknown[] = [];
  const show = async ({ document }: { document: unknown }) => void shown.push(document);
  const watching = repeat(() => (looks.shift() ?? (() => failing("none")))(), { seconds: 0.001, show });
  await expect(watching).rejects.toMatchObject({ code: "not_found" });
  expect(shown).toEqual([1, 2]);
  expect(said.mock.calls).toEqual([["No answer. Trying again every 0.001 s.\n"]]);
  said.mockRestore();
  await expect(repeat(() => failing("unavailable"), { seconds: 1, show })).rejects.toMatchObject({
    code: "unavailable",
  });
});

describe("with a platform", () => {
  const cli = useCli();
  let web: string;
  beforeAll(async () => {
    web = await cli.run("--name web");
  });

  /** Waits until what the process has printed matches, and returns all of it. */
  function reading(child: ChildProcess): (expected: RegExp) => Promise<string> {
    let out = "";
    const told: (() => void)[] = [];
    child.stdout?.on("data", (chunk) => {
      out += String(chunk);
      for (const tell of told.splice(0)) tell();
    });
    return async (expected) => {
      while (!expected.test(out)) await new Promise<void>((resolve) => void told.push(resolve));
      return out;
    };
  }

  test("in a pipe there is a block for every change, and 130 after Ctrl-C", async () => {
    const { child, ended } = cli.begin("ps --watch=1", { TZ: "Asia/Kolkata" });
    const printed = reading(child);
    await printed(/running/);
    await cli.hibernaut(`machine suspend ${web}`);
    await printed(/suspended/);
    child.kill("SIGINT");
    const { code, stdout, stderr } = await ended;
    expect({ code, stderr }).toEqual({ code: 130, stderr: "" });
    const blocks = stdout.split("\n\n");
    for (const block of blocks) expect(block).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+05:30\nAPP +ID .*\nshop .*/);
    // Nothing is printed only because time passes, which `2 s ago` tells.
    expect(new Set(blocks.map((block) => / web +(\S+)/.exec(block)?.[1])).size).toBe(blocks.length);
    await cli.hibernaut(`machine start ${web}`);
  });

  test("with --json there is a line for every change", async () => {
    for (const words of ["machine list", "status --app shop"]) {
      const { child, ended } = cli.begin(`${words} -w 1 -o json`);
      const printed = reading(child);
      await printed(/\n/);
      await cli.hibernaut(`machine cordon ${web}`);
      await printed(/"cordoned":true.*\n/);
      child.kill("SIGINT");
      const { code, stdout } = await ended;
      expect(code).toBe(130);
      const documents = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.stringify(JSON.parse(line)).match(/"cordoned":\w+/)?.[0]);
      expect(documents).toEqual(['"cordoned":false', '"cordoned":true']);
      await cli.hibernaut(`machine uncordon ${web}`);
    }
  });

  test.each([["ps --watch=1"], ["top --interval 1"]])("on a terminal %s is drawn in place", async (words) => {
    const { child, ended } = cli.onTerminal(words, "cols 90 rows 10");
    const out = reading(child);
    const twice = /\x1b\[H[^]*web[^]*\x1b\[H[^]*web[^]*\x1b\[J/; // oxlint-disable-line no-control-regex
    const drawn = await out(twice);
    expect(drawn.split("\x1b[2J"), "cleared once, then drawn over").toHaveLength(2);
    child.stdin.write(CTRL_C);
    expect((await ended).code).toBe(130);
  });

  test.each([
    ["ps --watch=0", /Use at least 1 second/],
    ["status --watch=soon", /Use at least 1 second/],
    ["apps list --watch", /unknown option|--watch/i],
  ])("%s is refused", async (words, message) => {
    const { code, stderr } = await cli.hibernaut(words);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });

  test("the first look has to succeed", async () => {
    const { code, stderr } = await cli.hibernaut("status --watch", { HIBERNAUT_API_URL: "http://127.0.0.1:1" });
    expect(stderr).toMatch(/^Error: The platform does not answer/);
    expect(code).toBe(1);
  });
});
