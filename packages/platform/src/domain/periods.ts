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

/**
 * Returns the fewest periods that make up the days from one midnight to another: whole months, and the days around them.
 * A year has up to 72 of them, however many days.
 */
export function periodsOf(since: number, until: number): number[] {
  const periods: number[] = [];
  for (let at = since; at < until; ) {
    const date = new Date(at);
    const next = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
    const whole = date.getUTCDate() === 1 && next <= until;
    periods.push(whole ? monthOf(at) : dayOf(at));
    at = whole ? next : at + DAY_MS;
  }
  return periods;
}
