/** Long output on a terminal goes through a pager, and nothing else does. */
import { beforeAll, describe, expect, test } from "vitest";
import { pagerOf } from "../src/pager.ts";
import { useCli } from "./helpers.ts";

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
  const cli = useCli();
  beforeAll(async () => {
    const id = await cli.run();
    for (const line of ["one", "two", "three", "four", "five", "six"]) await cli.server.print(id, line);
  });

  /** A pager that marks each line, so that its work can be seen. */
  const MARKS = "sed 's/^/paged: /'";

  /** What a terminal of six rows shows, and the exit code. */
  async function onTerminal(words: string, more: Record<string, string> = {}) {
    const environment = { NO_COLOR: "1", PAGER: MARKS, ...more };
    const { stdout, code } = await cli.onTerminal(words, "cols 160 rows 6", environment).ended;
    return { lines: stdout.trimEnd().split(/\r*\n/), code };
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
    expect((await cli.hibernaut("logs", { PAGER: MARKS })).stdout).not.toContain("paged: ");
  });

  test("a pager may be quit early, and one that is not there hides nothing", async () => {
    expect(await onTerminal("logs", { PAGER: "head -n 1" })).toMatchObject({ code: 0, lines: { length: 1 } });
    const { lines, code } = await onTerminal("logs", { HIBERNAUT_PAGER: "no-such-pager" });
    expect(lines[0]).toMatch(/no-such-pager.*not found/);
    expect(lines.at(-1)).toMatch(/ stdout +six$/);
    expect(code).toBe(0);
  });
});
