/** Who comes last when machines want more CPU than there is. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Use, whoComesLast } from "../../src/cpu/rules.ts";

const uses = (...all: number[]): Use[] => all.map((use) => ({ use, last: false }));

test("seven machines that never stop come after one that answers now and then", () => {
  const greedy = Array.from({ length: 7 }, () => 0.28);
  expect(whoComesLast(uses(0.03, ...greedy))).toEqual([false, ...greedy.map(() => true)]);
});

test("with nobody to come before, nobody comes last", () => {
  expect(whoComesLast(uses(1))).toEqual([false]);
  expect(whoComesLast(uses(0.7, 0.6, 0.7))).toEqual([false, false, false]);
  expect(whoComesLast(uses(0, 0.09)), "nobody uses much").toEqual([false, false]);
  expect(whoComesLast([])).toEqual([]);
});

test("one in the middle stays what it is", () => {
  const middle = (last: boolean) => whoComesLast([{ use: 0.4, last }, ...uses(0.01, 1)])[0];
  expect([middle(false), middle(true)]).toEqual([false, true]);
});

test("a machine that uses less never comes after one that uses more and was the same", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 2, noNaN: true })), fc.boolean(), (all, last) => {
      const lasts = whoComesLast(all.toSorted((a, b) => a - b).map((use) => ({ use, last })));
      expect(lasts.lastIndexOf(false)).toBeLessThan(lasts.includes(true) ? lasts.indexOf(true) : lasts.length);
    }),
  );
});
