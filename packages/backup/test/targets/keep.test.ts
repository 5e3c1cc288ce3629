/** Which backups stay: what people write, and what never goes whatever they write. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keptSets, parseKeep } from "../../src/targets/keep.ts";

const DAY_MS = 24 * 60 * 60_000;
/** One set at three in the morning of each of the last `days` days, oldest first. */
const nightly = (days: number) =>
  Array.from({ length: days }, (_, day) => ({
    at: new Date(Date.parse("2026-11-27T03:00:00Z") - (days - 1 - day) * DAY_MS).toISOString(),
  }));

describe("what is kept", () => {
  test("is written in days, weeks and months, in any order", () => {
    expect(parseKeep("7d,4w,6m")).toEqual({ daily: 7, weekly: 4, monthly: 6 });
    expect(parseKeep("6m 7d")).toEqual({ daily: 7, weekly: 0, monthly: 6 });
    expect(parseKeep("6m,7d")).toEqual({ daily: 7, weekly: 0, monthly: 6 });
    for (const wrong of ["", "7", "7x", "0d", "7d,3d", "99999d", "-1d"])
      expect(() => parseKeep(wrong), wrong).toThrow();
  });

  test("is the last backup of each of the latest days, weeks and months", () => {
    const kept = keptSets(nightly(365), parseKeep("7d,4w,6m"));
    expect([...kept].map(({ at }) => at.slice(0, 10)).toSorted()).toEqual([
      ...["2026-06-30", "2026-07-31", "2026-08-31", "2026-09-30", "2026-10-31", "2026-11-08", "2026-11-15"],
      ...["2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26", "2026-11-27"],
    ]);
  });

  test("reaches back over days without a backup", () => {
    const sets = nightly(100).filter((_, day) => day % 10 === 0);
    expect(keptSets(sets, parseKeep("3d")).size).toBe(3);
  });
});

const anyKeep = fc.record({ daily: fc.nat(40), weekly: fc.nat(20), monthly: fc.nat(20) });
const anySets = fc.array(
  fc.record({
    at: fc
      .date({ min: new Date("2020-01-01"), max: new Date("2027-01-01"), noInvalidDate: true })
      .map((date) => date.toISOString()),
  }),
  { maxLength: 60 },
);

test("the newest is kept by every rule, and the order in which backups are listed changes nothing", () => {
  fc.assert(
    fc.property(anySets, anyKeep, (sets, keep) => {
      const kept = keptSets(sets, keep);
      const newest = sets.toSorted((a, b) => (a.at < b.at ? 1 : -1))[0]?.at;
      const times = (of: Iterable<{ at: string }>) => [...of].map(({ at }) => at).toSorted();
      expect(times(kept).at(-1)).toBe(newest);
      expect(new Set(times(keptSets(sets.toReversed(), keep)))).toEqual(new Set(times(kept)));
    }),
  );
});

test("when a backup is added, none comes back that an earlier pruning gave up", () => {
  fc.assert(
    fc.property(anySets, anyKeep, (sets, keep) => {
      const dated = [...new Map(sets.map((set) => [set.at, set])).values()].toSorted((a, b) => (a.at < b.at ? -1 : 1));
      const before = keptSets(dated.slice(0, -1), keep);
      for (const set of keptSets(dated, keep)) if (set !== dated.at(-1)) expect(before.has(set)).toBe(true);
    }),
  );
});
