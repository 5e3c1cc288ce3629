/** Which run is due, as a pure function of the schedule, the last handled run and the time. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Due, dueOf } from "../../src/schedule/due.ts";
import { nextRun, type Schedule, scheduleOf } from "../../src/schedule/runs.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const at = (text: string) => new Date(text);
const utc = (cron: string): Schedule => ({ cron, timezone: "UTC" });

/** The next `count` runs, as the platform finds them one after the other. */
function runs(schedule: Schedule, after: string, count: number): string[] {
  const found: string[] = [];
  for (let time: Date | undefined = at(after); found.length < count; ) {
    time = nextRun(schedule, time);
    if (time === undefined) break;
    found.push(time.toISOString().replace(":00.000Z", "Z"));
  }
  return found;
}

/** A machine that is looked at whenever the clock says, and the runs that it got. */
function follow(schedule: Schedule, began: number, looks: readonly number[]) {
  let handled = new Date(began);
  const got: { due: Date; at: number }[] = [];
  for (const time of looks) {
    const due: Due = dueOf(schedule, handled, new Date(time));
    if (due.kind === "begin") handled = new Date(time);
    if (due.kind !== "run") continue;
    handled = due.at;
    got.push({ due: due.at, at: time });
  }
  return { got, handled };
}

describe("daylight saving time in Berlin", () => {
  const berlin = (cron: string): Schedule => ({ cron, timezone: "Europe/Berlin" });

  test("a time that is skipped in spring comes right after the gap, once", () => {
    expect(runs(berlin("30 2 * * *"), "2026-03-27T12:00:00Z", 3)).toEqual([
      "2026-03-28T01:30Z",
      "2026-03-29T01:00Z",
      "2026-03-30T00:30Z",
    ]);
  });

  test("a time that comes twice in autumn counts once, the first time", () => {
    expect(runs(berlin("30 2 * * *"), "2026-10-24T12:00:00Z", 2)).toEqual(["2026-10-25T00:30Z", "2026-10-26T01:30Z"]);
  });

  test("several times a day follow the clock: not in the hour that is skipped, twice in the one that is repeated", () => {
    expect(runs(berlin("15 1,2 * * *"), "2026-03-28T12:00:00Z", 2)).toEqual(["2026-03-29T00:15Z", "2026-03-29T23:15Z"]);
    expect(runs(berlin("15 1,2 * * *"), "2026-10-24T12:00:00Z", 3)).toEqual([
      "2026-10-24T23:15Z",
      "2026-10-25T00:15Z",
      "2026-10-25T01:15Z",
    ]);
  });

  test("every half hour stays every half hour", () => {
    for (const day of ["2026-03-28T23:59:00Z", "2026-10-24T23:59:00Z"]) {
      const times = runs(berlin("*/30 * * * *"), day, 12).map((time) => Date.parse(time));
      for (const [index, time] of times.slice(1).entries()) expect(time - (times[index] ?? 0)).toBe(30 * MINUTE);
    }
  });

  test("a platform that looks every seven minutes of a year gives a daily run exactly once a local day", () => {
    const began = Date.parse("2026-01-01T00:00:00Z");
    const looks = Array.from({ length: (365 * DAY) / (7 * MINUTE) }, (_, index) => began + index * 7 * MINUTE);
    const { got } = follow(berlin("30 2 * * *"), began, looks);
    const local = new Intl.DateTimeFormat("sv-SE", { timeZone: "Europe/Berlin", dateStyle: "short" });
    const days = got.map(({ due }) => local.format(due));
    expect(new Set(days).size).toBe(days.length);
    expect(days).toHaveLength(365);
  });
});

describe("the words of Fly count from the creation of the machine", () => {
  const created = at("2026-01-31T22:17:40Z");
  const of = (schedule: string, timezone?: string) =>
    scheduleOf({ image: "i", schedule, ...(timezone && { schedule_timezone: timezone }) }, created) ?? utc("");

  test.each([
    ["hourly", undefined, "2026-01-31T23:17Z"],
    ["daily", undefined, "2026-02-01T22:17Z"],
    ["weekly", undefined, "2026-02-07T22:17Z"],
    ["monthly", undefined, "2026-02-28T22:17Z"],
    ["daily", "Asia/Kolkata", "2026-02-01T22:17Z"],
    ["monthly", "Asia/Kolkata", "2026-02-28T22:17Z"], // the first of the month there
  ])("%s, %s", (word, timezone, first) => {
    expect(runs(of(word, timezone), created.toISOString(), 1)).toEqual([first]);
  });
});

/** What a cron expression of minutes and hours means, read in the plainest way. */
function isRun(minutes: readonly number[], hours: readonly number[], time: number): boolean {
  const date = new Date(time);
  return minutes.includes(date.getUTCMinutes()) && hours.includes(date.getUTCHours());
}

const minutes = fc.uniqueArray(fc.integer({ min: 0, max: 59 }), { minLength: 1, maxLength: 3 });
const hours = fc.uniqueArray(fc.integer({ min: 0, max: 23 }), { minLength: 1, maxLength: 4 });
/** Seconds between two looks: mostly short, sometimes as long as an outage. */
const steps = fc.array(fc.oneof(fc.integer({ min: 1, max: 1800 }), fc.integer({ min: 1800, max: 200_000 })), {
  minLength: 1,
  maxLength: 40,
});

describe("however the looks fall", () => {
  test("no run is repeated or lost: each look handles the last run since the one before, and nothing else", () => {
    fc.assert(
      fc.property(minutes, hours, fc.nat(86_400), steps, (minute, hour, offset, waits) => {
        const began = Date.parse("2026-05-01T00:00:00Z") + offset * 1000;
        const looks: number[] = [];
        for (const wait of waits) looks.push((looks.at(-1) ?? began) + wait * 1000);
        const { got } = follow(utc(`${minute.join(",")} ${hour.join(",")} * * *`), began, looks);
        const expected = looks.flatMap((look, index) => {
          const since = looks[index - 1] ?? began;
          for (let time = Math.floor(look / MINUTE) * MINUTE; time > since; time -= MINUTE)
            if (isRun(minute, hour, time)) return [{ due: new Date(time), at: look }];
          return [];
        });
        expect(got).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });

  test("a clock that jumps either way never makes a run early or twice, unless it was wrong by more than a day", () => {
    const jumps = fc.array(fc.integer({ min: -12 * 3600, max: 12 * 3600 }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(jumps, (seconds) => {
        const began = Date.parse("2026-05-01T12:00:00Z");
        let time = began;
        let highest = began;
        const looks = seconds.map((jump) => {
          time = Math.max(time + jump * 1000, highest - DAY + MINUTE);
          highest = Math.max(highest, time);
          return time;
        });
        const { got } = follow(utc("*/20 * * * *"), began, looks);
        for (const [index, { due, at: look }] of got.entries()) {
          expect(due.getTime()).toBeLessThanOrEqual(look);
          expect(due.getTime()).toBeGreaterThan(got[index - 1]?.due.getTime() ?? began);
        }
      }),
      { numRuns: 200 },
    );
  });

  test("after a clock that was years ahead, the schedule begins again", () => {
    const now = at("2026-05-01T12:00:00Z");
    expect(dueOf(utc("0 * * * *"), at("2038-01-01T00:00:00Z"), now)).toEqual({ kind: "begin" });
    expect(dueOf(utc("0 * * * *"), undefined, now)).toEqual({ kind: "begin" });
    const wait = dueOf(utc("0 * * * *"), at("2026-05-01T18:00:00Z"), now);
    expect(wait).toEqual({ kind: "wait", next: at("2026-05-01T19:00:00Z") });
  });
});
