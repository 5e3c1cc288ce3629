/** Where the sleep chart draws things. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Span, Wake } from "../src/data/track.ts";
import { hoursIn, nearestWake, pathsOf, piecesOf, timesOf, xOf } from "../src/pages/overview/strip-layout.ts";

const HOUR_MS = 3_600_000;
const area = { from: 0, until: 24 * HOUR_MS, width: 800 };

const spans = fc
  .array(
    fc.tuple(
      fc.constantFrom("running", "warm", "suspended", "stopped", "failed"),
      fc.integer({ min: 1, max: 3 * HOUR_MS }),
    ),
    { maxLength: 300 },
  )
  .map((all) => {
    let from = -2 * HOUR_MS;
    return all.map(([state, length], index): Span => {
      const span = { state, from, until: index === all.length - 1 ? undefined : from + length };
      from += length;
      return span;
    });
  });

test("pieces stay within the strip, and those of one state do not overlap", () => {
  fc.assert(
    fc.property(spans, (all) => {
      const ends = new Map<string, number>();
      for (const { state, left, right } of piecesOf(all, area)) {
        expect(left).toBeGreaterThanOrEqual(0);
        expect(right).toBeLessThanOrEqual(area.width);
        expect(right - left).toBeGreaterThan(0);
        expect(left).toBeGreaterThan(ends.get(state) ?? -1);
        ends.set(state, right);
      }
    }),
  );
});

test("every state that is in the time shown is on the strip, however short it was", () => {
  fc.assert(
    fc.property(spans, (all) => {
      const shown = all.filter(({ from, until = area.until }) => until > area.from && from < area.until);
      expect(new Set(pathsOf(piecesOf(all, area)).keys())).toEqual(new Set(shown.map(({ state }) => state)));
    }),
  );
});

test("the pieces are never more than the strip has pixels, for each state", () => {
  const all = Array.from({ length: 20_000 }, (_one, index): Span => {
    const from = index * 4000;
    return { state: index % 2 === 0 ? "running" : "suspended", from, until: from + 4000 };
  });
  expect(piecesOf(all, area).length).toBeLessThan(2 * area.width);
});

test("times of states add up to the time that is known", () => {
  fc.assert(
    fc.property(spans, (all) => {
      const known = all.filter(({ from }) => from < area.until);
      const [first] = known;
      fc.pre(first !== undefined);
      const sum = Object.values(timesOf(all, area)).reduce((a, b) => a + b, 0);
      const last = Math.min(area.until, known.at(-1)?.until ?? area.until);
      expect(sum).toBe(Math.max(0, last - Math.max(area.from, first?.from ?? 0)));
    }),
  );
});

test("a pointer finds the nearest wake, and none where there is none", () => {
  const wakes = [2, 4, 4.1].map((hour): Wake => ({ at: hour * HOUR_MS, kind: "warm", reason: "", took: 1 }));
  const at = (hour: number) => xOf(hour * HOUR_MS, area);
  expect(nearestWake(wakes, area, at(2) + 3, 7)).toBe(0);
  expect(nearestWake(wakes, area, at(4.09), 7)).toBe(2);
  expect(nearestWake(wakes, area, at(3), 7)).toBeUndefined();
  expect(nearestWake([], area, 0, 7)).toBeUndefined();
});

test("labels are at full hours within the chart", () => {
  const from = new Date(2026, 0, 10, 9, 25).getTime();
  const hours = hoursIn({ from, until: from + 24 * HOUR_MS }, 3).map((at) => new Date(at));
  expect(hours.map((hour) => hour.getHours())).toEqual([12, 15, 18, 21, 0, 3, 6, 9]);
  expect(hours.every((hour) => hour.getMinutes() === 0)).toBe(true);
});
