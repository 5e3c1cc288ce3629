/** Wakes as the plots take them. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { decades, hourMiddles, latencies, stackedCounts } from "../src/pages/overview/plot-data.ts";

const figures = (count: number) => ({ count, p50_ms: 10 * count, p99_ms: 100 * count });
const report = {
  from: "2026-01-31T12:00:00.000Z",
  until: "2026-01-31T14:00:00.000Z",
  hours: [
    { from: "2026-01-31T12:00:00.000Z", kinds: { warm: figures(3), cold: figures(1) } },
    { from: "2026-01-31T13:00:00.000Z", kinds: {} },
  ],
};

test("bars of kinds are on top of each other, and an hour without wakes has none", () => {
  expect(stackedCounts(report, ["warm", "resume", "cold"])).toEqual([
    [4, null],
    [1, null],
    [1, null],
  ]);
  expect(hourMiddles(report)[1]).toBe(Date.parse("2026-01-31T13:30:00.000Z") / 1000);
});

test("latencies have no point where nothing woke", () => {
  expect(latencies(report, ["warm", "resume"])).toEqual([
    [30, null],
    [300, null],
    [null, null],
    [null, null],
  ]);
});

test("the scale of latencies reaches around all of them, in whole powers of ten", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000_000 }), fc.nat({ max: 1_000_000 }), (least, more) => {
      const scale = decades(least, least + more);
      expect(scale[0]).toBeLessThanOrEqual(least);
      expect(scale.at(-1)).toBeGreaterThanOrEqual(least + more);
      expect(scale.length).toBeGreaterThan(1);
      for (const value of scale) expect(Number.isInteger(Math.log10(value))).toBe(true);
    }),
  );
});
