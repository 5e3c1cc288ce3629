/** When a machine wants to be awake, as it says so. */
import { HibernautError } from "@hibernaut/domain/errors";
import { parseSeconds } from "@hibernaut/lib/quantities";

/** A machine that plans further ahead has most likely mixed up its units. */
const LONGEST_S = 365 * 24 * 60 * 60;

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** A time, or a time from now: one of the two. */
export interface WakeRequest {
  /** RFC 3339, with an offset or `Z`. */
  at?: string | undefined;
  /** Seconds, or a text such as `1h30m`. */
  in?: number | string | undefined;
}

/** Returns the requested time. Throws `invalid_argument` unless it is in the future and within a year. */
export function wakeTime({ at, in: wait }: WakeRequest, now: Date): Date {
  if ((at === undefined) === (wait === undefined))
    refuse("at", "Send either `at`, a time, or `in`, the time from now until then.");
  const time = at === undefined ? now.getTime() + durationMs(wait ?? "") : timeOf(at);
  const field = at === undefined ? "in" : "at";
  const given = at ?? String(wait);
  if (time <= now.getTime())
    refuse(field, `"${given}" is not in the future: it is ${now.toISOString()} now. Ask for a later time.`);
  if (time - now.getTime() > LONGEST_S * 1000)
    refuse(field, `"${given}" is more than a year away. Ask for a time within 365 days, and again when it has come.`);
  return new Date(time);
}

function durationMs(wait: number | string): number {
  const seconds = parseSeconds(wait, "s");
  if (seconds !== undefined) return Math.round(seconds * 1000);
  const shown = String(wait).slice(0, 60);
  return refuse("in", `"${shown}" is not a valid duration. Use seconds, or a text such as "30s", "15m" or "1h30m".`);
}

function timeOf(at: string): number {
  const [, year, month, day] = RFC_3339.exec(at) ?? [];
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  const time = Number(day) <= daysInMonth ? Date.parse(at) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  const shown = at.slice(0, 60);
  return refuse("at", `"${shown}" is not a valid time. Use RFC 3339 with an offset, as in "2026-01-31T06:00:00Z".`);
}

function refuse(field: "at" | "in", message: string): never {
  throw new HibernautError("invalid_argument", message, { field });
}
