/** Which schedules are accepted, and what people are told about the others. */
import { cronRefusal } from "@hibernaut/domain/cron";
import { scheduleRefusal } from "@hibernaut/domain/schedule";
import { Cron } from "croner";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const START = new Date("2026-01-01T00:00:00Z");
const next = (cron: string) => new Cron(cron, { timezone: "UTC", mode: "5-part" }).nextRun(START);

describe("a schedule is accepted", () => {
  test.each([
    "hourly",
    "monthly",
    "* * * * *",
    "*/5 * * * *",
    "0 3 * * mon-fri",
    "0 3 1,15 JAN-JUN/2 *",
    "0 0 29 2 *",
    "0 0 30 2 1",
    "0 0 * * 7",
    "10-50/20 0-23/6 * * 0-7",
    "  0   3 * * * ",
  ])("%s", (schedule) => {
    expect(scheduleRefusal({ schedule })).toBeUndefined();
  });
});

describe("a schedule is refused with what to do", () => {
  test.each([
    ["Daily", /Use hourly, daily, weekly, monthly, or a cron expression/],
    ["@daily", /Use hourly, daily/],
    ["", /Use hourly, daily/],
    ["2026-12-01T00:00:00Z", /or a cron expression such as/],
    ["*".repeat(500), /is not a valid schedule/],
    ["* * * * * *", /has 6 fields.*five: minute, hour.*Seconds are not supported/],
    ["* * * *", /has 4 fields, and a cron expression has five/],
    ["60 * * * *", /in the field minute, "60" does not fit. Use 0 to 59/],
    ["0 24 * * *", /in the field hour, .* Use 0 to 23/],
    ["0 0 0 * *", /in the field day of month, .* Use 1 to 31/],
    ["0 0 * feb-foo *", /in the field month, .* Use 1 to 12/],
    ["0 0 * * 8", /in the field day of week, .* Use 0 to 7/],
    ["0 0 * * fri-mon", /turned around/],
    ["5/15 * * * *", /Write \*\/15, or 5-59\/15/],
    ["*/0 * * * *", /step .* Use 1 to 59/],
    ["*/90 * * * *", /step .* Use 1 to 59/],
    ["1,,2 * * * *", /cannot be read/],
    ["0 0 L * *", /"L" does not fit/],
    ["0 0 ? * *", /does not fit/],
    ["0 0 30 2 *", /never runs: none of its months has such a day/],
    ["0 0 31 2,4,jun *", /never runs/],
  ])("%s", (schedule, sentence) => {
    expect(scheduleRefusal({ schedule })).toMatchObject({ key: "schedule", message: expect.stringMatching(sentence) });
  });

  test.each(["Mars/Olympus", "+02:00", "", "UTC+2", "Europe/Berlin "])("the time zone %j", (schedule_timezone) => {
    const refusal = scheduleRefusal({ schedule: "daily", schedule_timezone });
    expect(refusal).toMatchObject({ key: "schedule_timezone", message: expect.stringMatching(/Europe\/Berlin/) });
  });

  test("a time zone alone", () => {
    expect(scheduleRefusal({ schedule_timezone: "UTC" })?.message).toMatch(/Set `schedule` too/);
  });
});

/** Fields in all their forms, with values that may not fit. */
const value = fc.oneof(fc.nat(62).map(String), fc.constantFrom("mon", "SUN", "feb", "DEC", "x"));
const range = fc.oneof(
  fc.constant("*"),
  value,
  fc.tuple(value, value).map((both) => both.join("-")),
);
const part = fc.tuple(range, fc.option(fc.nat(61))).map(([of, step]) => (step === null ? of : `${of}/${step}`));
const field = fc.array(part, { minLength: 1, maxLength: 2 }).map((parts) => parts.join(","));
const likely = (most: number) =>
  fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 1, max: most }).map(String) }, { weight: 1, arbitrary: field });
const days = fc.oneof({ weight: 3, arbitrary: fc.constant("*") }, { weight: 1, arbitrary: field });

test("whatever is accepted runs some day, and what is refused as never does not", () => {
  const expression = fc.tuple(likely(59), likely(23), likely(31), likely(12), days).map((fields) => fields.join(" "));
  fc.assert(
    fc.property(expression, (cron) => {
      const refusal = cronRefusal(cron);
      if (refusal === undefined) expect(next(cron), cron).toBeInstanceOf(Date);
      else if (/never runs/.test(refusal)) expect(next(cron), cron).toBeNull();
    }),
    { numRuns: 300 },
  );
});

test("no text makes the check throw", () => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[*\d,/ -]{0,40}$/));
  fc.assert(
    fc.property(text, text, (schedule, schedule_timezone) => {
      scheduleRefusal({ schedule, schedule_timezone });
    }),
  );
});
