/** Which sets are kept: for how many days, weeks and months the last one of each. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";

/** For how many of the latest days, weeks and months that have a set, the last one is kept. */
export interface Keep {
  daily: number;
  weekly: number;
  monthly: number;
}

/** More than a hundred years of months is a typing error. */
const MAX_COUNT = 1200;
const UNITS = { d: "daily", w: "weekly", m: "monthly" } as const;
const DAY_MS = 24 * 60 * 60_000;
/** Clocks of hosts differ by less, in milliseconds. */
const CLOCK_MS = DAY_MS;
/** 1970 began on a Thursday, and weeks begin on Mondays. */
const MONDAY_OFFSET_DAYS = 3;

/**
 * Reads what people write. Throws `invalid_argument` for anything else.
 *
 * @example
 * parseKeep("7d,4w,6m"); // { daily: 7, weekly: 4, monthly: 6 }
 */
export function parseKeep(text: string): Keep {
  const keep: Keep = { daily: 0, weekly: 0, monthly: 0 };
  const seen = new Set<string>();
  for (const part of text.trim().split(/[\s,]+/)) {
    const [, count = "", unit = ""] = /^(\d{1,4})([dwm])$/.exec(part) ?? [];
    if (unit === "" || seen.has(unit) || Number(count) < 1 || Number(count) > MAX_COUNT) throw refused(text);
    seen.add(unit);
    keep[UNITS[unit as keyof typeof UNITS]] = Number(count);
  }
  return keep;
}

/**
 * Returns the sets that are kept, of whole ones only. The newest is always among them, whatever the rule says, and so is
 * one whose time cannot be read, or lies in the future: a clock was wrong, then or now. Such ones count for no period. Days,
 * weeks (from Monday) and months are those of UTC.
 */
export function keptSets<T extends { at: string }>(
  sets: readonly T[],
  keep: Keep,
  now = Number.POSITIVE_INFINITY,
): Set<T> {
  const kept = new Set(sets.filter(({ at }) => !(Date.parse(at) <= now + CLOCK_MS)));
  const dated = sets.filter((set) => !kept.has(set)).toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at));
  if (dated[0] !== undefined) kept.add(dated[0]);
  const rules: [count: number, periodOf: (time: number) => number][] = [
    [keep.daily, dayOf],
    [keep.weekly, weekOf],
    [keep.monthly, monthOf],
  ];
  for (const [count, periodOf] of rules) {
    const periods = new Set<number>();
    for (const set of dated) {
      const period = periodOf(Date.parse(set.at));
      if (periods.has(period)) continue;
      if (periods.size >= count) break;
      periods.add(period);
      kept.add(set);
    }
  }
  return kept;
}

function dayOf(time: number): number {
  return Math.floor(time / DAY_MS);
}

function weekOf(time: number): number {
  return Math.floor((dayOf(time) + MONDAY_OFFSET_DAYS) / 7);
}

function monthOf(time: number): number {
  const date = new Date(time);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

function refused(text: string): HibernautError {
  const message = `"${text.slice(0, 100)}" does not say what to keep. Write how many days, weeks and months, as in 7d,4w,6m.`;
  return new HibernautError("invalid_argument", message, { field: "keep" });
}
