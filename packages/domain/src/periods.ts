/**
 * Days and months of usage, in UTC. A period is a number: `20260131` is a day, `202601` a month, and 0 is all time. The
 * number of digits tells them apart.
 */

export const DAY_MS = 86_400_000;
/** The period that never ends. */
export const ALL_TIME = 0;

/** Returns the midnight (UTC) that begins the day of a moment. Both are milliseconds since 1970. */
export function midnightOf(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS;
}

/** Returns the day of a moment, for example 20260131. */
export function dayOf(at: number): number {
  const date = new Date(at);
  return monthOf(at) * 100 + date.getUTCDate();
}

/** Returns the month of a moment, for example 202601. */
export function monthOf(at: number): number {
  const date = new Date(at);
  return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
}

/** Returns a day in the form of RFC 3339, for example `2026-01-31`. */
export function dayText(day: number): string {
  const digits = String(day);
  return `${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}`;
}

/** Cuts a time at every midnight in it. Yields nothing for an empty one. */
export function* daysOf(since: number, until: number): Generator<{ day: number; since: number; until: number }> {
  for (let from = since; from < until; from = midnightOf(from) + DAY_MS)
    yield { day: dayOf(from), since: from, until: Math.min(until, midnightOf(from) + DAY_MS) };
}

/** Periods from the first to the last, both included, as they are numbered. */
export interface PeriodRange {
  first: number;
  last: number;
  /** -1 for days that are taken away from a month that another range contains. */
  weight: 1 | -1;
}

/** All time, as a range. */
export const ALL_TIME_RANGE: PeriodRange = { first: ALL_TIME, last: ALL_TIME, weight: 1 };

/** Returns the days from one midnight to another. */
export function dayRange(since: number, end: number, weight: 1 | -1 = 1): PeriodRange {
  return { first: dayOf(since), last: dayOf(end - DAY_MS), weight };
}

/**
 * Returns the same days as up to three ranges with few periods in them: months, and at either end the days that these
 * lack or have too many, whichever are fewer. A year has up to 44 periods.
 */
export function periodRanges(since: number, end: number): PeriodRange[] {
  const firstMonth = nearestMonth(since);
  const lastMonth = nearestMonth(end);
  if (firstMonth >= lastMonth) return [dayRange(since, end)];
  const months: PeriodRange = { first: monthOf(firstMonth), last: monthOf(lastMonth - 1), weight: 1 };
  return [months, ...between(since, firstMonth), ...between(lastMonth, end)];
}

/** The days from one midnight to another, or, if the other comes first, those between them, to be taken away. */
function between(from: number, to: number): PeriodRange[] {
  if (from === to) return [];
  return [from < to ? dayRange(from, to) : dayRange(to, from, -1)];
}

/** The beginning of a month that is nearest to a moment. */
function nearestMonth(at: number): number {
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const [before, after] = [Date.UTC(year, month, 1), Date.UTC(year, month + 1, 1)];
  return at - before <= after - at ? before : after;
}
