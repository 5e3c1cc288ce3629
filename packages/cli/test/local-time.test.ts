/** Times as people in other zones read them. */
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { localTime, localWord, writtenTime } from "../src/local-time.ts";

afterEach(() => vi.unstubAllEnvs());

test.each([
  ["UTC", "2026-01-31 13:30:05 +00:00", "2026-01-31T13:30:05.123Z"],
  ["Europe/Paris", "2026-01-31 14:30:05 +01:00", "2026-01-31T14:30:05.123+01:00"],
  ["Asia/Kolkata", "2026-01-31 19:00:05 +05:30", "2026-01-31T19:00:05.123+05:30"],
  ["America/St_Johns", "2026-01-31 10:00:05 -03:30", "2026-01-31T10:00:05.123-03:30"],
  ["Pacific/Kiritimati", "2026-02-01 03:30:05 +14:00", "2026-02-01T03:30:05.123+14:00"],
])("in %s", (zone, text, word) => {
  vi.stubEnv("TZ", zone);
  expect(localTime("2026-01-31T13:30:05.123Z")).toBe(text);
  expect(localWord("2026-01-31T13:30:05.123Z")).toBe(word);
});

test("the offset is that of the moment, not of today", () => {
  vi.stubEnv("TZ", "Europe/Paris");
  expect(localTime("2026-07-01T12:00:00Z")).toBe("2026-07-01 14:00:00 +02:00");
  // The hour that there is twice.
  expect(localTime("2026-10-25T00:30:00Z")).toBe("2026-10-25 02:30:00 +02:00");
  expect(localTime("2026-10-25T01:30:00Z")).toBe("2026-10-25 02:30:00 +01:00");
});

test("what is not a time is shown as it is", () => {
  expect(localTime("never")).toBe("never");
  expect(localWord("never")).toBe("never");
});

describe("a time that the user writes", () => {
  test("without a zone is one of the reader's", () => {
    vi.stubEnv("TZ", "Europe/Paris");
    expect(writtenTime("2026-01-31 14:30")).toBe("2026-01-31T13:30:00.000Z");
    expect(writtenTime("2026-01-31T14:30:05.5")).toBe("2026-01-31T13:30:05.500Z");
    expect(writtenTime("2026-01-31 14:30:05 +05:30")).toBe("2026-01-31T09:00:05.000Z");
  });

  test.each(["10m", "2026-01-31", "2026-99-31 25:00", "soon", ""])("%j is the platform's to read", (text) => {
    expect(writtenTime(text)).toBe(text);
  });

  test("can be one that the CLI has shown, in every zone", () => {
    const moments = fc.date({ min: new Date("1980-01-01"), max: new Date("2100-01-01"), noInvalidDate: true });
    const zones = fc.constantFrom("UTC", "Europe/Paris", "Asia/Kolkata", "America/New_York", "Australia/Lord_Howe");
    fc.assert(
      fc.property(moments, zones, (moment, zone) => {
        vi.stubEnv("TZ", zone);
        const time = moment.toISOString();
        expect(writtenTime(localWord(time))).toBe(time);
        expect(writtenTime(localTime(time))).toBe(`${time.slice(0, 19)}.000Z`);
      }),
    );
  });
});
