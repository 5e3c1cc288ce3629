import fc from "fast-check";
import { expect, test } from "vitest";
import { LineCutter, MAX_LINE_BYTES } from "../../src/logs/lines.ts";

function linesOf(chunks: Buffer[]): string[] {
  const cutter = new LineCutter();
  return [...chunks.flatMap((chunk) => cutter.push(chunk)), ...cutter.flush()];
}

/** The bytes, cut at these positions. */
function chunksOf(bytes: Buffer, cuts: number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...places, bytes.length].map((end, index) => bytes.subarray(places[index - 1] ?? 0, end));
}

const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
  { weight: 4, arbitrary: fc.constantFrom("\n", "\r\n", "\r", "ä", "€", "😀", "") },
  { weight: 1, arbitrary: fc.integer({ min: -3, max: 3 }).map((more) => "x".repeat(MAX_LINE_BYTES + more)) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 4 }).map((less) => `${"y".repeat(MAX_LINE_BYTES - less)}😀€`) },
);
const bytes = fc.oneof(
  fc.array(text, { maxLength: 20 }).map((parts) => Buffer.from(parts.join(""))),
  fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
);

test("the lines are the same however the bytes are cut into pieces", () => {
  fc.assert(
    fc.property(bytes, fc.array(fc.nat(), { maxLength: 30 }), (all, cuts) => {
      expect(linesOf(chunksOf(all, cuts))).toEqual(linesOf([all]));
    }),
    { numRuns: 500 },
  );
});

test("no valid UTF-8 is lost or changed", () => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 20 }), fc.array(fc.nat(), { maxLength: 30 }), (parts, cuts) => {
      const all = parts.join("").toWellFormed();
      const found = linesOf(chunksOf(Buffer.from(all), cuts)).join("");
      expect(found).toBe(all.replaceAll(/\r?(?:\n|$)/g, ""));
    }),
    { numRuns: 500 },
  );
});

test.each([
  ["ends by LF", "a\nb\n", ["a", "b"]],
  ["ends by CR LF, empty lines", "a\r\n\n\r\nb", ["a", "", "", "b"]],
  ["bytes that are no UTF-8", "caf\xc3\xa9 \xff!\n", ["café \ufffd!"]],
  ["the longest line", `${"x".repeat(MAX_LINE_BYTES)}\n`, ["x".repeat(MAX_LINE_BYTES)]],
  ["the longest line and CR LF", `${"x".repeat(MAX_LINE_BYTES)}\r\n`, ["x".repeat(MAX_LINE_BYTES)]],
  ["a longer one", `${"x".repeat(MAX_LINE_BYTES + 1)}\n`, ["x".repeat(MAX_LINE_BYTES), "x"]],
])("%s", (_name, raw, lines) => {
  expect(linesOf([Buffer.from(raw, "latin1")])).toEqual(lines);
});

test("a line that is no longer awaited is passed on, and its late end is not another line", () => {
  const cutter = new LineCutter();
  expect(cutter.push(Buffer.from("Password: "))).toEqual([]);
  expect(cutter.flush()).toEqual(["Password: "]);
  expect(cutter.flush()).toEqual([]);
  expect(cutter.push(Buffer.from("\nthanks\n"))).toEqual(["thanks"]);
});

test("a line without an end does not use up memory", () => {
  const cutter = new LineCutter();
  for (let count = 0; count < 1000; count += 1) cutter.push(Buffer.alloc(10_000, "x"));
  expect(cutter.held).toBeLessThanOrEqual(MAX_LINE_BYTES);
});
