/** The rules of metering: which state costs what, how time is cut into days, which ranges and prices are accepted. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { STATES } from "@hibernaut/domain/machine";
import { DAY_MS, dayOf, daysOf, dayText, midnightOf, periodRanges } from "@hibernaut/domain/periods";
import { accrued, meterAfter, noAmounts, type Rates, wholeMb } from "@hibernaut/domain/usage";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { costOf, MONTH_MS, pricesOf, readPrices } from "../src/prices.ts";
import { usageRange } from "../src/range.ts";

const day = (text: string) => Date.parse(`${text}T00:00:00Z`);
const NOW = Date.parse("2026-03-15T12:00:00Z");

describe("the meter", () => {
  test.each([
    ["a start counts as running at once", "suspended", "starting", "running"],
    ["a suspend counts as running until the machine is suspended", "running", "suspending", "running"],
    ["a stop of a running machine counts as running", "running", "stopping", "running"],
    ["a stop of a suspended machine does not", "suspended", "stopping", "suspended"],
    ["an update of a sleeping machine does not", "suspended", "updating", "suspended"],
    ["an update of a running machine counts as running", "running", "updating", "running"],
    ["a machine that is destroyed costs what it cost before", "stopped", "destroying", "stopped"],
    ["one that waits for its next start has no guest", "running", "restarting", "stopped"],
    ["nor has one that failed", "running", "failed", "stopped"],
  ] as const)("%s", (_name, before, state, after) => {
    expect(meterAfter(state, before)).toBe(after);
  });

  test("every state has one, except for the end", () => {
    for (const state of STATES) expect(meterAfter(state, undefined) === null, state).toBe(state === "destroyed");
  });

  test("suspended and stopped accrue the same, apart from their own time", () => {
    const rates: Rates = { meter: "suspended", cpus: 2, memoryMb: 512, layerMb: 7, volumeMb: 1024, snapshotMb: 0 };
    const asleep = accrued(rates, DAY_MS);
    const off = accrued({ ...rates, meter: "stopped" }, DAY_MS);
    expect(asleep).toMatchObject({ running_ms: 0, cpu_ms: 0, memory_mb_ms: 0, suspended_ms: DAY_MS, stopped_ms: 0 });
    expect({ ...asleep, suspended_ms: 0, stopped_ms: DAY_MS }).toEqual(off);
  });

  test("what is stored is never free", () => {
    expect([0, 1, 1024 ** 2, 1024 ** 2 + 1].map(wholeMb)).toEqual([0, 1, 1, 2]);
  });
});

describe("days", () => {
  const moment = fc.integer({ min: day("1999-12-01"), max: day("2040-01-01") });

  test("any time is cut into days that touch, each within its own day", () => {
    fc.assert(
      fc.property(moment, fc.integer({ min: 1, max: 400 * DAY_MS }), (since, ms) => {
        const pieces = [...daysOf(since, since + ms)];
        expect(pieces[0]?.since).toBe(since);
        expect(pieces.at(-1)?.until).toBe(since + ms);
        for (const [index, piece] of pieces.entries()) {
          expect(piece.until).toBeGreaterThan(piece.since);
          if (index > 0) expect(piece.since).toBe(pieces[index - 1]?.until);
          expect([dayOf(piece.since), dayOf(piece.until - 1)]).toEqual([piece.day, piece.day]);
        }
      }),
      { numRuns: 50 },
    );
    expect([...daysOf(NOW, NOW)]).toEqual([]);
  });

  test("days and months cover a range exactly once, with few periods", () => {
    fc.assert(
      fc.property(moment, fc.integer({ min: 1, max: 366 }), (at, count) => {
        const since = midnightOf(at);
        const end = since + count * DAY_MS;
        const wanted = [...daysOf(since, end)].map((piece) => piece.day);
        const [least, most] = [(wanted[0] ?? 0) - 10_000, (wanted.at(-1) ?? 0) + 10_000];
        const near = everyDay.filter((each) => each >= least && each <= most);
        const ranges = periodRanges(since, end);
        const weightOf = (period: number) =>
          ranges.reduce((sum, { first, last, weight }) => sum + (period >= first && period <= last ? weight : 0), 0);
        // Each day counts once, be it as itself or as a part of its month, and no other day does.
        for (const each of near)
          expect(weightOf(each) + weightOf(Math.floor(each / 100)), String(each)).toBe(Number(wanted.includes(each)));
        const size = everyPeriod.filter((period) => weightOf(period) !== 0).length;
        expect(size).toBeLessThanOrEqual(44);
        expect(ranges.length).toBeLessThanOrEqual(3);
      }),
      { numRuns: 30 },
    );
    expect(periodRanges(day("2026-01-01"), day("2027-01-01"))).toEqual([{ first: 202601, last: 202612, weight: 1 }]);
    expect(periodRanges(day("2026-01-03"), day("2026-03-02"))).toEqual([
      { first: 202601, last: 202602, weight: 1 },
      { first: 20260101, last: 20260102, weight: -1 },
      { first: 20260301, last: 20260301, weight: 1 },
    ]);
    expect(periodRanges(day("2026-01-20"), day("2026-02-10"))).toEqual([
      { first: 20260120, last: 20260209, weight: 1 },
    ]);
  });
  const everyDay = [...daysOf(day("1998-01-01"), day("2042-01-01"))].map((piece) => piece.day);
  const everyPeriod = [...everyDay, ...new Set(everyDay.map((each) => Math.floor(each / 100)))];

  test("are written as people write them", () => {
    expect(dayText(dayOf(NOW))).toBe("2026-03-15");
  });
});

describe("a range", () => {
  test("is the last 30 days by default, and whole days otherwise", () => {
    expect(usageRange({}, NOW)).toEqual({ since: day("2026-02-13"), end: day("2026-03-16"), until: NOW });
    const january = { from: day("2026-01-01"), to: day("2026-02-01") };
    expect(usageRange(january, NOW)).toEqual({ since: january.from, end: january.to, until: january.to });
    const inside = { from: day("2026-01-01") + 5, to: day("2026-01-02") + 5 };
    expect(usageRange(inside, NOW)).toMatchObject({ since: day("2026-01-01"), end: day("2026-01-03") });
    // The end of today is a way to say now.
    expect(usageRange({ to: day("2026-03-16") }, NOW).until).toBe(NOW);
  });

  test("of a leap year is a year", () => {
    expect(usageRange({ from: day("2024-01-01"), to: day("2025-01-01") }, NOW).since).toBe(day("2024-01-01"));
  });

  test.each([
    [
      "turned around",
      { from: day("2026-02-01"), to: day("2026-01-01") },
      "from",
      /must be before `to`.*earlier `from` or a later `to`/,
    ],
    ["empty", { from: day("2026-02-01"), to: day("2026-02-01") }, "from", /must be before/],
    ["longer than a year", { from: day("2025-01-01"), to: day("2026-01-03") }, "from", /367 days.*up to 366/],
    ["in the future", { from: day("2026-04-01"), to: day("2026-05-01") }, "from", /`from` is in the future/],
    ["that ends in the future", { from: day("2026-03-01"), to: day("2026-03-17") }, "to", /`to` is in the future/],
  ] as const)("%s is refused", (_name, range, field, message) => {
    const read = () => usageRange(range, NOW);
    expect(read).toThrow(expect.objectContaining({ code: "invalid_argument", details: { field } }));
    expect(read).toThrow(message);
  });
});

describe("prices", () => {
  const PRICES = { currency: "EUR", cpu_second: 0.00001, memory_gb_second: 0.000002, storage_gb_month: 0.15 };

  test("make a cost, and what running the whole time would have cost", () => {
    const hour = 3_600_000;
    const used = {
      ...noAmounts(),
      cpu_ms: hour,
      memory_mb_ms: 512 * hour,
      whole_cpu_ms: 24 * hour,
      whole_memory_mb_ms: 512 * 24 * hour,
      layer_mb_ms: 1024 * MONTH_MS,
      volume_mb_ms: 1024 * MONTH_MS,
      snapshot_mb_ms: 1024 * MONTH_MS,
    };
    const cost = costOf(used, pricesOf(PRICES, "prices.json"));
    expect(cost.cpu).toBeCloseTo(0.036, 12);
    expect(cost.memory).toBeCloseTo(0.0036, 12);
    // Of the three kinds of storage, the snapshot is not billed.
    expect(cost.storage).toBeCloseTo(0.3, 12);
    expect(cost.total).toBeCloseTo(0.3396, 12);
    expect(cost.ifAlwaysRunning).toBeCloseTo(24 * 0.0396 + 0.3, 12);
    expect(cost.savedBySleeping).toBeCloseTo(23 * 0.0396, 12);
  });

  test("are read from a file, and a price that is left out is 0", async () => {
    const file = join(await tempFolder("prices"), "prices.json");
    await writeFile(file, '{"currency":"USD","cpu_second":0.5}');
    expect(readPrices(file)).toEqual({ currency: "USD", cpu_second: 0.5, memory_gb_second: 0, storage_gb_month: 0 });
    await writeFile(file, "{");
    expect(() => readPrices(file)).toThrow(`${file} cannot be read as JSON`);
    expect(() => readPrices(`${file}.missing`)).toThrow("cannot be read as JSON: ENOENT");
  });

  test.each([
    ["a list", [], /must be a JSON object with currency, cpu_second, memory_gb_second and storage_gb_month\.$/],
    ["null", null, /must be a JSON object/],
    ["a negative price", { ...PRICES, cpu_second: -1 }, /has the price -1 for cpu_second\. Use a number from 0 to/],
    ["a price as text", { ...PRICES, cpu_second: "1" }, /has the price "1" for cpu_second/],
    ["an endless price", { ...PRICES, cpu_second: 1e300 }, /has the price 1e\+300 for cpu_second/],
    ["a misspelled key", { ...PRICES, cpu_seconds: 1 }, /unknown key "cpu_seconds"\. Did you mean cpu_second\?$/],
    ["an unknown key", { ...PRICES, zebra: 1 }, /unknown key "zebra"\. Use currency, /],
    ["no currency", { cpu_second: 1 }, /has the currency missing\. Use a code of ISO 4217/],
    ["an unknown currency", { ...PRICES, currency: "EURO" }, /has the currency "EURO"/],
    ["a currency in lower case", { ...PRICES, currency: "eur" }, /has the currency "eur"/],
  ])("%s is refused", (_name, document, message) => {
    const read = () => pricesOf(document, "/etc/prices.json");
    const details = expect.objectContaining({ setting: "HIBERNAUT_PRICE_FILE" });
    expect(read).toThrow(expect.objectContaining({ code: "invalid_argument", details }));
    expect(read).toThrow(message);
    expect(read).toThrow("/etc/prices.json");
  });
});
