/** When backups are due, and when someone has to be told that none came. */
import { describe, expect, test } from "vitest";
import { isOverdue, nextDue, type Past } from "../../src/targets/due.ts";

const NIGHTLY: Past = {
  ...{ schedule: "0 3 * * *", scheduledAt: "2026-11-20T12:00:00.000Z", lastSuccessAt: null, lastEndedAt: null },
  failed: false,
};
const due = (past: Partial<Past>, now: string) => nextDue({ ...NIGHTLY, ...past }, new Date(now))?.toISOString();
const overdue = (past: Partial<Past>, now: string) => isOverdue({ ...NIGHTLY, ...past }, new Date(now));

describe("a nightly backup", () => {
  test("is first due in the night after it was scheduled, in UTC", () => {
    expect(due({}, "2026-11-20T13:00:00Z")).toBe("2026-11-21T03:00:00.000Z");
    expect(due({ schedule: null }, "2026-11-20T13:00:00Z")).toBe(undefined);
  });

  test("is due once, at once, after a platform was off for days", () => {
    expect(due({ lastEndedAt: "2026-11-21T03:10:00.000Z" }, "2026-11-25T12:00:00Z")).toBe("2026-11-22T03:00:00.000Z");
    expect(due({ lastEndedAt: "2026-11-25T12:05:00.000Z" }, "2026-11-25T12:06:00Z")).toBe("2026-11-26T03:00:00.000Z");
  });

  test("that failed is tried again within the hour", () => {
    const failed = { lastEndedAt: "2026-11-21T03:10:00.000Z", failed: true };
    expect(due(failed, "2026-11-21T03:20:00Z")).toBe("2026-11-21T04:10:00.000Z");
    expect(due({ ...failed, lastEndedAt: "2026-11-21T02:30:00.000Z" }, "2026-11-21T02:40:00Z")).toBe(
      "2026-11-21T03:00:00.000Z",
    );
  });

  test("is overdue when a second night has passed without a good one", () => {
    const good = { lastSuccessAt: "2026-11-21T03:00:01.000Z" };
    expect(overdue(good, "2026-11-22T12:00:00Z")).toBe(false);
    expect(overdue(good, "2026-11-23T03:00:01Z")).toBe(true);
    expect(overdue({ schedule: null, ...good }, "2027-11-23T03:00:01Z")).toBe(false);
    expect(overdue({}, "2026-11-22T03:00:01Z"), "one that never came").toBe(true);
  });

  test("is not held up by a clock that was wrong by years", () => {
    const future = { lastEndedAt: "2036-01-01T00:00:00.000Z", scheduledAt: "2036-01-01T00:00:00.000Z" };
    expect(due(future, "2026-11-20T13:00:00Z")).toBe("2026-11-21T03:00:00.000Z");
  });
});

test("a monthly backup is overdue a day after it was due", () => {
  const monthly = {
    schedule: "0 3 1 * *",
    lastSuccessAt: "2026-11-01T03:00:01.000Z",
    scheduledAt: "2026-01-01T00:00:00Z",
  };
  expect(overdue(monthly, "2026-12-01T12:00:00Z")).toBe(false);
  expect(overdue(monthly, "2026-12-02T03:00:01Z")).toBe(true);
});
