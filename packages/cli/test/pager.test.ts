/** Long output on a terminal goes through a pager, and nothing else does. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { pagerOf } from "../src/pager.ts";
import { SERVICE, startCli, type TestCli } from "./helpers.ts";

// Each test starts several processes, and the host may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const PROGRAM = join(import.meta.dirname, "../bin/hibernaut.js");

test.each([
  [{}, "less"],
  [{ PAGER: "more" }, "more"],
  [{ PAGER: "more", HIBERNAUT_PAGER: "less -S" }, "less -S"],
  [{ PAGER: "cat" }, undefined],
  [{ PAGER: "more", HIBERNAUT_PAGER: "" }, undefined],
  [{ TERM: "dumb" }, undefined],
])("with %j the pager is %s", (environment, pager) => {
  expect(pagerOf(environment)).toBe(pager);
});

describe("with a platform", () => {
  let cli: TestCli;
  beforeAll(async () => {
    cli = await startCli();
    const { document } = await cli.json(["machine", "run", "app:1", ...SERVICE, "--name", "web"]);
    for (const line of ["one", "two", "three", "four", "five", "six"]) await cli.server.print(document.id, line);
  });
  afterAll(() => cli.close());

  /** A pager that marks each line, so that its work can be seen. */
  const MARKS = "sed 's/^/paged: /'";

  /** What a terminal of six rows shows, and the exit code. */
  async function onTerminal(words: string, more: Record<string, string> = {}) {
    const env = {
      PATH: process.env.PATH,
      HIBERNAUT_API_URL: cli.server.url,
      HIBERNAUT_API_TOKEN: cli.server.token,
      HIBERNAUT_APP: "shop",
      NO_COLOR: "1",
      TERM: "xterm",
      PAGER: MARKS,
      ...more,
    };
    const command = `stty cols 160 rows 6; exec "${process.execPath}" "${PROGRAM}" ${words}`;
    const child = spawn("script", ["-qefc", command, "/dev/null"], { env });
    const [out, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
    return { lines: out.trimEnd().split(/\r*\n/), code: code as number };
  }
  const isPaged = (lines: string[]) => lines.every((line) => line.startsWith("paged: "));

  test("logs and help do, as long as they do not fit", async () => {
    const logs = await onTerminal("logs");
    expect(logs.lines.at(-1)).toMatch(/^paged: .* stdout +six$/);
    expect({ paged: isPaged(logs.lines), code: logs.code }).toEqual({ paged: true, code: 0 });
    expect(isPaged((await onTerminal("logs --limit 2")).lines)).toBe(false);
    expect((await onTerminal("machine --help")).lines[0]).toBe("paged: Usage: hibernaut machine [options] [command]");
    // Who types only the name looks for the way in, not for a way out.
    expect((await onTerminal("")).lines[0]).toBe("Usage: hibernaut [options] [command]");
  });

  test("not if they are told not to, in a pipe, or as JSON", async () => {
    for (const words of ["logs --no-pager", "logs --json", "ps --help --no-pager", "ps"])
      expect((await onTerminal(words)).lines.join("\n"), words).not.toContain("paged: ");
    expect((await cli.hibernaut(["logs"], { PAGER: MARKS })).stdout).not.toContain("paged: ");
  });

  test("a pager may be quit early, and one that is not there hides nothing", async () => {
    expect(await onTerminal("logs", { PAGER: "head -n 1" })).toMatchObject({ code: 0, lines: { length: 1 } });
    const { lines, code } = await onTerminal("logs", { HIBERNAUT_PAGER: "no-such-pager" });
    expect(lines[0]).toMatch(/no-such-pager.*not found/);
    expect(lines.at(-1)).toMatch(/ stdout +six$/);
    expect(code).toBe(0);
  });
});
