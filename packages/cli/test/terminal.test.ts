import { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { ago, fields, megabytes, redraw, showProgress, style, table, widthOf } from "../src/terminal.ts";

afterEach(() => vi.unstubAllEnvs());

function stream(isTTY: boolean) {
  const output = new PassThrough();
  return Object.assign(output, { isTTY, text: () => String(output.read() ?? "") }) as unknown as NodeJS.WriteStream & {
    text(): string;
  };
}

test("colour is for terminals, and not with NO_COLOR", () => {
  vi.stubEnv("NO_COLOR", "");
  vi.stubEnv("TERM", "xterm");
  expect(style("red", "x", stream(true))).toContain("\x1b[31m");
  expect(style("red", "x", stream(false))).toBe("x");
  vi.stubEnv("NO_COLOR", "1");
  expect(style("red", "x", stream(true))).toBe("x");
});

test("progress is a spinner with seconds on a terminal, cleared at the end", async () => {
  const terminal = stream(true);
  // A frame takes 100 ms: this is long enough for a second one.
  expect(await showProgress("Starting", delay(150, "done"), terminal)).toBe("done");
  const text = terminal.text();
  expect(text).toMatch(/\r\x1b\[2K⠋ Starting .*0\.0 s/);
  expect(text).toMatch(/⠙ Starting .*0\.1 s/);
  expect(text.endsWith("\r\x1b[2K")).toBe(true);
});

test("what others chose as the name of a file or an image is shown while there is progress, and not carried out", async () => {
  const terminal = stream(true);
  const evil = "oci:app\u001b]0;owned\u0007:1";
  await showProgress(`Packing ${evil}`, delay(1), terminal);
  redraw(`Uploading ${evil}`, terminal);
  const text = terminal.text();
  expect(text).not.toContain("\u001b]");
  expect(text).toContain("Uploading oci:app\\u001b]0;owned\\u0007:1");
});

test("and one plain line elsewhere", async () => {
  const log = stream(false);
  await expect(showProgress("Starting", Promise.reject(new Error("no")), log)).rejects.toThrow("no");
  expect(log.text()).toBe("Starting...\n");
});

test("a table is as wide as its cells", () => {
  expect(
    table([
      ["ID", "NAME"],
      ["123", "a"],
      ["4", "bcd"],
    ]),
  ).toBe("ID   NAME\n123  a\n4    bcd");
});

test("a table fits a terminal: paths keep their ends, texts their beginnings, ids are whole", () => {
  const rows = [
    ["ID", "IMAGE", "DESCRIPTION"],
    [
      "vol_0123456789abcdef",
      "oci:/srv/images/of/mine/counter:latest",
      "machine 1 did not come up in 120 seconds, because",
    ],
  ];
  const narrow = table(rows, { width: 80 });
  const [, line = ""] = narrow.split("\n");
  expect(line).toHaveLength(80);
  expect(line).toMatch(/^vol_0123456789abcdef  ….*\/counter:latest  machine 1 did not come .*…$/);
  // Where it cannot fit, ids still do not suffer.
  expect(table(rows, { width: 10 })).toContain("vol_0123456789abcdef  …mine/counter:latest  machine 1 did not c…");
  expect(table(rows, { width: Number.POSITIVE_INFINITY })).toContain("in 120 seconds, because");
  expect(table([["AT"], ['{"by":"proxy","path":"/a/b"}']], { width: 20 })).toContain('{"by":"proxy","path…');
  expect(widthOf({ isTTY: true, columns: 80 })).toBe(80);
  expect(widthOf({ isTTY: false, columns: 80 })).toBe(Number.POSITIVE_INFINITY);
  expect(widthOf({ isTTY: true, columns: 0 })).toBe(Number.POSITIVE_INFINITY);
  expect(fields([["reason", "x".repeat(300)]])).toBe(`reason  ${"x".repeat(300)}`);
});

test("what still does not fit goes without its spare columns, in their order", () => {
  const rows = [
    ["ID", "REGION", "IMAGE", "STATE"],
    ["5f541f9f4c0fdc", "local", "registry.example.com/me/shop:v1", "suspended"],
  ];
  const heads = (width: number) =>
    table(rows, { width, spare: ["REGION", "IMAGE"] })
      .split("\n", 1)[0]
      ?.split(/ +/);
  expect(heads(100)).toEqual(["ID", "REGION", "IMAGE", "STATE"]);
  expect(heads(60)).toEqual(["ID", "REGION", "IMAGE", "STATE"]);
  expect(heads(50)).toEqual(["ID", "IMAGE", "STATE"]);
  expect(heads(40)).toEqual(["ID", "STATE"]);
  expect(heads(10)).toEqual(["ID", "STATE"]);
});

test("times and sizes are for people", () => {
  const now = Date.parse("2026-01-03T00:00:00Z");
  expect(ago("2026-01-02T23:59:30Z", now)).toBe("30 s ago");
  expect(ago("2026-01-02T23:30:00Z", now)).toBe("30 min ago");
  expect(ago("2026-01-02T12:00:00Z", now)).toBe("12 h ago");
  expect(ago("2025-12-20T00:00:00Z", now)).toBe("14 d ago");
  expect(ago("2026-01-04T00:00:00Z", now)).toBe("0 s ago");
  expect(megabytes(268_500_000)).toBe("256 MB");
  expect(megabytes(1_500_000)).toBe("1.4 MB");
});
