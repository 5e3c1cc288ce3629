/** The recording of the tour: what README shows is in it, and what differs from run to run does not count. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { masked, parseTape, screenText, TAPE, tapeText, tourOf, withExcerpt } from "../../../../scripts/lib/tape.mjs";

const ROOT = join(import.meta.dirname, "../../../..");
const README = readFileSync(join(ROOT, "README.md"), "utf8");
const RECORDED = readFileSync(join(ROOT, TAPE), "utf8");
const ADVICE = "run `npm run tape`";

test("the recording has the commands that README has you type", () => {
  const commands = tourOf(README);
  expect(commands.length).toBeGreaterThan(10);
  expect(
    parseTape(RECORDED).map(({ command }) => command),
    ADVICE,
  ).toEqual(commands);
  expect(tapeText(parseTape(RECORDED))).toBe(RECORDED);
});

test("README shows what was recorded, with the numbers that its text names", () => {
  expect(withExcerpt(README, parseTape(RECORDED)), ADVICE).toBe(README);
});

test("README that shows anything else is refused", () => {
  const other = README.replace(/^HTTP\/1\.1 200 OK$/m, "HTTP/1.1 200 Fine");
  expect(() => withExcerpt(other, parseTape(RECORDED))).toThrow(/^The tour does not show this:\n\$ curl -i/);
});

test("another run with other names, times and measurements is the same", () => {
  const run = (id: string, ms: number, at: string) =>
    parseTape(
      [
        "$ hibernaut machine list",
        `${id}  calm-fox-${ms + 1000}  suspended  oci:/srv/counter:latest  ${ms} s ago`,
        "$ hibernaut logs",
        ...(ms > 5 ? [`${at} ${id.slice(0, 6)} stdout   ready`] : []),
        `${at} ${id.slice(0, 6)} platform started: after ${ms / 10} s`,
        ...(ms > 5 ? [] : [`${at} ${id.slice(0, 6)} stdout   ready`]),
      ].join("\n"),
    );
  const first = masked(run("5f541f9f4c0fdc", 3, "2026-01-31T12:00:00.000Z"));
  expect(masked(run("0123456789abcd", 30, "2027-11-01T00:00:01.123Z"))).toBe(first);
  expect(first).toContain("<id>  <name>  suspended");
});

test("a wake that found the paused virtual machine gone is the same", () => {
  const of = (...output: string[]) => masked([{ command: "curl -i", output }]);
  expect(of("suspended (warm)  local", "Hibernaut-Wake: warm; dur=9", "resumed warm in 9 ms", '{"kind":"warm"}')).toBe(
    of("suspended  local", "Hibernaut-Wake: resume; dur=150", "resumed in 150 ms", '{"kind":"resume"}'),
  );
});

test("another count, state or text is not", () => {
  const of = (line: string) => masked([{ command: "curl", output: [line] }]);
  expect(of('{"count":2,"pid":81}')).toBe(of('{"count":2,"pid":7}'));
  expect(of('{"count":2,"pid":81}')).not.toBe(of('{"count":3,"pid":81}'));
  expect(of("web  suspended")).not.toBe(of("web  stopped"));
});

test("what was drawn over is not on the screen any more", () => {
  const spinner = "\r\u001b[2K⠋ Starting \u001b[2m0.0 s\u001b[22m\r\u001b[2K⠙ Starting\r\u001b[2K";
  const question = "\u001b[1G\u001b[0JContinue? [y/N] \u001b[17Gy\r\r\n";
  expect(screenText(`${spinner}Machine 1 is running.\r\n\r\n${question}Done.\r\n`)).toEqual([
    "Machine 1 is running.",
    "Continue? [y/N] y",
    "Done.",
  ]);
});
