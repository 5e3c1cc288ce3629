import fc from "fast-check";
import { expect, test } from "vitest";
import { fold } from "../src/fold.ts";

test.each([
  ["STRASSE", "Straße"],
  ["ẞ", "ß"],
  ["ΟΔΟΣ", "οδος"],
  ["caf\u00e9", "CAFE\u0301"],
  ["ǅ", "ǆ"],
  ["ﬀ", "FF"],
  ["\u212b", "å"],
  ["𐐀", "𐐨"],
  // Its uppercase letter is the I of other languages, so it equals theirs too.
  ["ı", "i"],
])("%s and %s are the same", (a, b) => {
  expect(fold(a)).toBe(fold(b));
});

test.each([
  ["e", "é"],
  ["o", "0"],
  ["%", "_"],
])("%s and %s are not", (a, b) => {
  expect(fold(a)).not.toBe(fold(b));
});

test("every letter of Unicode equals its uppercase and lowercase letter", () => {
  const faults: string[] = [];
  for (let code = 0; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const letter = String.fromCodePoint(code);
    const folded = fold(letter);
    const same = [letter.toUpperCase(), letter.toLowerCase(), folded].every((other) => fold(other) === folded);
    if (!same || folded === "") faults.push(code.toString(16));
  }
  expect(faults).toEqual([]);
});

test("a text of uncombined letters contains all of its parts", () => {
  const text = fc.string({ unit: fc.constantFrom(...Array.from("aÉßΣσςİДǅ漢 %_\\")), minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(text, text, text, (before, part, after) => {
      expect(fold(before + part + after)).toContain(fold(part));
    }),
  );
});
