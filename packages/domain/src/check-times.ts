/** The times of a health check. Pure, and part of the CLI's bundle. */

/**
 * What is accepted, in milliseconds. More frequent checks would keep an app busy, and few apps answer in less time. A
 * machine that is checked less than once an hour is not checked.
 */
export const CHECK_MS = { minimum: 100, maximum: 3_600_000 } as const;
/** In it, failures don't count; 0 means that they count at once. In milliseconds. */
const GRACE_MS = { minimum: 0, maximum: CHECK_MS.maximum } as const;

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** The times as a configuration has them: a number of seconds, or a text with a unit. */
export interface CheckTimes {
  interval?: number | string | undefined;
  timeout?: number | string | undefined;
  grace_period?: number | string | undefined;
}

/** Reads a number of seconds, or a number with `ms`, `s`, `m` or `h`. Undefined for anything else. */
export function milliseconds(value: number | string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number") return value * 1000;
  const match = /^(\d+)(ms|s|m|h)$/.exec(value);
  return match === null ? undefined : Number(match[1]) * (UNITS[match[2] ?? ""] ?? 1);
}

/** Returns which time is out of bounds, and a message that says what to write; undefined when all are fine. */
export function checkTimeRefusal(times: CheckTimes): { key: keyof CheckTimes; message: string } | undefined {
  for (const key of ["interval", "timeout", "grace_period"] as const) {
    const { minimum, maximum } = key === "grace_period" ? GRACE_MS : CHECK_MS;
    const given = milliseconds(times[key]);
    if (given === undefined || (given >= minimum && given <= maximum)) continue;
    const least = minimum === 0 ? "0s" : `${minimum}ms`;
    return {
      key,
      message: `\`${key}\` of a check cannot be ${times[key]}. Use ${least} to 1h, as in "15s" or "500ms".`,
    };
  }
  return undefined;
}

/** Returns the time within the bounds: an earlier release stored what is refused now. */
export function withinBounds(ms: number): number {
  return Math.min(Math.max(ms, CHECK_MS.minimum), CHECK_MS.maximum);
}
