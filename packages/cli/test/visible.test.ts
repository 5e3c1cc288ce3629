/** What apps and guests say may hold control sequences: a terminal shows them, and does not carry them out. */
import { beforeAll, expect, test, vi } from "vitest";
import { style } from "../src/terminal.ts";
import { shown, visible } from "../src/visible.ts";
import { SERVICE, useCli } from "./helpers.ts";

/** Writes the clipboard, clears the line, and begins a sequence with one character of C1. */
const EVIL = "a\u001b]52;c;ZXZpbA==\u0007b\u001b[2K\rc\u009b31md";
const SHOWN = "a\\u001b]52;c;ZXZpbA==\\u0007b\\u001b[2K\\u000dc\\u009b31md";

test("control characters are shown, tabs and lines stay, and so do colours of our own", () => {
  expect(visible(EVIL)).toBe(SHOWN);
  expect(visible("one\ttwo\nthree ä 😀 \u00a0")).toBe("one\ttwo\nthree ä 😀 \u00a0");
  const stream = { isTTY: true } as NodeJS.WriteStream;
  vi.stubEnv("NO_COLOR", "");
  vi.stubEnv("TERM", "xterm");
  for (const format of ["red", "green", "yellow", "dim", "bold"] as const) {
    const ours = style(format, "ours", stream);
    expect(ours).toContain("\u001b");
    expect(shown(`${ours}${EVIL}`, stream)).toBe(`${ours}${SHOWN}`);
  }
  vi.unstubAllEnvs();
  // An app's colours neither reach the next line, nor what the command prints.
  expect(shown("\u001b[38;5;9mred\u001b[2K\nplain", stream)).toBe("\u001b[38;5;9mred\\u001b[2K\u001b[0m\nplain");
  expect(shown(EVIL, { isTTY: false })).toBe(EVIL);
});

test("a JSON document is the same document", () => {
  const document = { text: EVIL };
  expect(JSON.parse(visible(JSON.stringify(document)))).toEqual(document);
});

const cli = useCli();
beforeAll(async () => {
  await cli.server.print(await cli.run(), EVIL);
});

async function onTerminal(words: string): Promise<string> {
  return (await cli.onTerminal(words, undefined, { PAGER: "cat" }).ended).stdout;
}

test("logs on a terminal show them, raw logs and pipes have them as they are", async () => {
  for (const words of ["logs", "logs --json"]) {
    const out = await onTerminal(words);
    expect(out, words).not.toMatch(/\u001b(?!\[\d+m)|\u009b|\u0007/);
    expect(out, words).toContain(words === "logs" ? SHOWN : "\\u009b31md");
  }
  expect(await onTerminal("logs --raw")).toContain(EVIL);
  expect((await cli.hibernaut("logs")).stdout).toContain(EVIL);
});

test("so does what a guest gave as the reason of its failure", async () => {
  cli.server.world.host.faults.boot = new Error(`no such luck: ${EVIL}`);
  const { document } = await cli.json(`machine run app:1 ${SERVICE} --name broken`);
  delete cli.server.world.host.faults.boot;
  expect(document).toBeDefined();
  for (const words of ["machine status broken", "logs -m broken", "machine events broken"])
    expect(await onTerminal(words), words).not.toMatch(/\u001b(?!\[\d+m)|\u009b|\u0007/);
  expect(await onTerminal("machine status broken")).toContain("no such luck: a\\u001b]52");
});
