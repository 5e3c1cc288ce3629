/** Answers are bounded, say what is missing, and never end in half a character. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { startOf, withoutEnd, withoutMiddle } from "../src/answer.ts";

const NOTE = /\n\[\.\.\. (\d+) bytes were cut here\.[^\]]*\]\n/;

test("a long text loses its middle, and the note says how much that was", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), fc.integer({ min: 1, max: 200 }), (text, most) => {
      fc.pre(!text.includes("[..."));
      const cut = withoutMiddle(text, most);
      const whole = text.isWellFormed() ? text : Buffer.from(text).toString();
      if (Buffer.byteLength(text) <= most) {
        expect(cut).toBe(text);
        return;
      }
      const [head = "", missing, tail = ""] = cut.split(NOTE);
      expect(whole.startsWith(head) && whole.endsWith(tail)).toBe(true);
      expect(Buffer.byteLength(head) + Buffer.byteLength(tail)).toBeLessThanOrEqual(most);
      expect(Buffer.byteLength(head) + Number(missing) + Buffer.byteLength(tail)).toBe(Buffer.byteLength(whole));
    }),
  );
});

test("the beginning of a file ends with a whole character", () => {
  const bytes = Buffer.from("a\u00e4\u{1f600}b");
  expect([0, 1, 2, 3, 6, 7, 8, 99].map((most) => startOf(bytes, most))).toEqual([
    ...["", "a", "a", "a\u00e4", "a\u00e4", "a\u00e4\u{1f600}"],
    ...["a\u00e4\u{1f600}b", "a\u00e4\u{1f600}b"],
  ]);
});

test("a long list loses whole lines, and says how many", () => {
  expect(withoutEnd(["one", "two"], 8, "Look")).toBe("one\ntwo");
  expect(withoutEnd(["one", "two", "three"], 8, "Look")).toBe("one\ntwo\n[... 1 more were cut here. Look ...]");
});
