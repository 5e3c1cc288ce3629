/** Quantities and times as they are written. */
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ago, bytes, count, duration, hourOf, lasting, money, share } from "../src/format.ts";

describe("a duration", () => {
  test.each([
    [0, "0 ms"],
    [12.4, "12 ms"],
    [999, "999 ms"],
    [1000, "1.0 s"],
    [4260, "4.2 s"],
    [59_999, "59 s"],
    [119_999, "119 s"],
    [120_000, "2 min"],
    [7_199_000, "119 min"],
    [7_200_000, "2 h"],
    [172_800_000, "2 days"],
    [-5, "0 ms"],
  ])("of %d ms is %s", (ms, expected) => {
    expect(duration(ms)).toBe(expected);
  });
});

test.each([
  [0, "0 bytes"],
  [1023, "1023 bytes"],
  [256 * 1024 ** 2, "256 MB"],
  [1.5 * 1024 ** 3, "1.5 GB"],
  [900 * 1024 ** 3, "900 GB"],
])("%d bytes are %s", (number, expected) => {
  expect(bytes(number)).toBe(expected);
});

test("a share says neither all nor nothing unless it is", () => {
  fc.assert(
    fc.property(fc.nat({ max: 1_000_000 }), fc.integer({ min: 1, max: 1_000_000 }), (part, rest) => {
      const whole = part + rest;
      expect(share(part, whole)).not.toBe("100%");
      expect(share(part, whole) === "0%").toBe(part === 0);
      expect(share(whole, whole)).toBe("100%");
    }),
  );
  expect(share(1, 0)).toBe("0%");
});

test("times before and after now", () => {
  expect([ago(0, 500), ago(0, 65_000), ago(65_000, 0)]).toEqual(["now", "65 s ago", "in 65 s"]);
});

test("what lasted as long as is known lasted longer", () => {
  const hour = 3_600_000;
  expect(lasting(0, hour, 24 * hour)).toBe("60 min");
  expect([lasting(0, 24 * hour, 24 * hour), lasting(0, 25 * hour, 24 * hour)]).toEqual([
    "more than 24 h",
    "more than 24 h",
  ]);
});

test("an hour of the platform begins at half past where clocks are half an hour off", () => {
  vi.stubEnv("TZ", "Asia/Kolkata");
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(hourOf("2026-01-31T09:00:00.000Z")).toBe("14:30");
});

test("numbers come with their nouns, and small amounts of money with their digits", () => {
  expect([count(1, "machine"), count(2500, "machine")]).toEqual(["1 machine", "2,500 machines"]);
  expect(money(0.0042, "EUR")).toContain("0.0042");
  expect(money(26.871, "EUR")).toContain("26.87");
});
