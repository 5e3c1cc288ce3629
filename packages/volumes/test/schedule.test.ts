/** When scheduled snapshots are due: pure rules under a clock that tests move. */
import type { SnapshotSchedule } from "@hibernaut/domain/volume";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { afterSnapshot, afterTrouble, isUnchanged, newSchedule, scheduleStep } from "../src/schedule.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.parse("2026-03-01T00:00:00Z");

const id = fc.integer({ min: 0 }).map((number) => `vol_${number.toString(16).padStart(16, "0")}`);
const step = (volume: string, schedule: SnapshotSchedule | null, now: number) =>
  scheduleStep({ id: volume, state: "created", schedule }, { now, intervalMs: DAY });

/** Looks every minute for some days, and once more at their end: a time in the last minute is seen then. */
function live(volume: string, { days, up = () => true, works = () => true }: LiveOptions) {
  let schedule = newSchedule(new Date(START));
  const taken: number[] = [];
  const tries: number[] = [];
  for (let now = START; now <= START + days * DAY; now += MINUTE) {
    if (!up(now) || step(volume, schedule, now).kind !== "take") continue;
    tries.push(now);
    if (works(now)) {
      taken.push(now);
      schedule = afterSnapshot(schedule, new Date(now), { id: "vs_1", disk: null });
    } else schedule = afterTrouble(schedule, new Date(now), "the disk is full");
  }
  return { taken, tries, schedule };
}

interface LiveOptions {
  days: number;
  up?(now: number): boolean;
  works?(now: number): boolean;
}

describe("a volume with scheduled snapshots", () => {
  test("has one in each day, at its own time", () => {
    fc.assert(
      fc.property(id, (volume) => {
        const { taken } = live(volume, { days: 5 });
        expect(taken).toHaveLength(5);
        for (const [index, at] of taken.slice(1).entries()) expect(at - (taken[index] ?? 0)).toBe(DAY);
        expect((taken[0] ?? 0) - START).toBeLessThanOrEqual(DAY);
      }),
      // In the last minute of its day.
      { numRuns: 20, examples: [["vol_0000000040b564a4"]] },
    );
  });

  test("shares its time with few others", () => {
    const hours = new Map<number, number>();
    for (let index = 0; index < 240; index += 1) {
      const found = step(`vol_${index}`, newSchedule(new Date(START)), START);
      const hour = found.kind === "wait" ? Math.floor((found.until - START) / HOUR) : -1;
      hours.set(hour, (hours.get(hour) ?? 0) + 1);
    }
    expect(hours.size).toBe(24);
    expect(Math.max(...hours.values())).toBeLessThan(40);
  });

  test("makes up for what it missed once, however long the platform was down", () => {
    fc.assert(
      fc.property(id, fc.integer({ min: 1, max: 30 }), (volume, down) => {
        const back = START + (down + 1) * DAY;
        const { taken } = live(volume, { days: down + 3, up: (now) => now < START + DAY || now >= back });
        expect(taken.filter((at) => at >= back && at < back + DAY).length).toBeLessThanOrEqual(2);
        expect(taken).toContain(back);
      }),
      { numRuns: 20 },
    );
  });

  test("never takes two for one day, whatever the times at which it is looked at", () => {
    fc.assert(
      fc.property(id, fc.array(fc.integer({ min: 0, max: 40 * HOUR }), { maxLength: 60 }), (volume, pauses) => {
        let schedule = newSchedule(new Date(START));
        let now = START;
        let taken = 0;
        for (const pause of pauses) {
          now += pause;
          if (step(volume, schedule, now).kind !== "take") continue;
          schedule = afterSnapshot(schedule, new Date(now));
          taken += 1;
          expect(step(volume, schedule, now).kind, "at once again").toBe("wait");
        }
        expect(taken).toBeLessThanOrEqual((now - START) / DAY + 1);
      }),
    );
  });

  test("is told when to be looked at next, and nothing is due before that", () => {
    fc.assert(
      fc.property(id, fc.nat(3 * DAY), fc.nat(5), (volume, after, failures) => {
        let schedule = newSchedule(new Date(START));
        const now = START + after;
        const due = step(volume, schedule, now).kind === "take";
        for (let failure = 0; failure < (due ? failures : 0); failure += 1)
          schedule = afterTrouble(schedule, new Date(now), "x");
        const found = step(volume, schedule, now);
        if (found.kind !== "wait") return;
        expect(found.until).toBeGreaterThan(now);
        expect(step(volume, schedule, found.until - 1).kind).toBe("wait");
        expect(step(volume, schedule, found.until).kind).toBe("take");
      }),
    );
  });

  test("tries again with growing pauses, at least hourly, and is on time again afterwards", () => {
    const works = (now: number) => now < START + DAY || now > START + 3 * DAY;
    const { tries, taken, schedule } = live("vol_1", { days: 5, works });
    const failed = tries.filter((at) => !works(at));
    const pauses = failed.slice(1).map((at, index) => (at - (failed[index] ?? 0)) / MINUTE);
    expect(pauses.slice(0, 6)).toEqual([5, 10, 20, 40, 60, 60]);
    expect(Math.max(...pauses)).toBe(60);
    expect(schedule.trouble).toBeNull();
    expect(
      taken.filter((at) => at > START + 3 * DAY),
      "one is made up for",
    ).toHaveLength(3);
  });

  test("does not wait for a time that a wrong clock wrote", () => {
    const wrong = { ...newSchedule(new Date(START)), handledAt: new Date(START + 1000 * DAY).toISOString() };
    expect(step("vol_1", wrong, START + 2 * DAY)).toEqual({ kind: "take" });
  });
});

test("a volume without a schedule, or that is not whole, has none", () => {
  expect(step("vol_1", null, START)).toEqual({ kind: "none" });
  const volume = { id: "vol_1", state: "destroying" as const, schedule: newSchedule(new Date(START)) };
  expect(scheduleStep(volume, { now: START + 9 * DAY, intervalMs: DAY })).toEqual({ kind: "none" });
});

test("a snapshot is not needed while the latest one exists and has what the disk has", () => {
  const taken = afterSnapshot(newSchedule(new Date(START)), new Date(START), { id: "vs_1", disk: "1:2:3:4" });
  expect(isUnchanged(taken, "1:2:3:4", () => true)).toBe(true);
  expect(isUnchanged(taken, "1:2:3:5", () => true)).toBe(false);
  expect(
    isUnchanged(taken, "1:2:3:4", () => false),
    "it was deleted",
  ).toBe(false);
  const running = afterSnapshot(taken, new Date(START), { id: "vs_2", disk: null });
  expect(
    isUnchanged(running, "1:2:3:4", () => true),
    "it was being written",
  ).toBe(false);
});
