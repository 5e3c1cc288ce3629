/** Moments as people name them. */
import { HibernautError } from "@hibernaut/domain/errors";

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;
const DATE = /^\d{4}-\d\d-\d\d$/;
const AGO = /^(\d{1,9}[smhd]){1,4}$/;

/**
 * Milliseconds since 1970 of a time (RFC 3339), or of how long ago something is (`30s`, `10m`, `1h30m`, `7d`).
 * `invalid_argument` for anything else.
 */
export function sinceMs(text: string, now = Date.now()): number {
  return ageOrTime(text, now) ?? refuse("since", "a time such as 2026-01-31T12:00:00Z", text);
}

/** The same for a parameter that also takes a date, which is the midnight (UTC) that begins it. */
export function dayMs(text: string, field: string, now = Date.now()): number {
  const at = DATE.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  // The parser takes February 31 for March 3.
  if (!Number.isNaN(at) && new Date(at).toISOString().startsWith(text)) return at;
  return ageOrTime(text, now) ?? refuse(field, "a date such as 2026-01-31, a time such as 2026-01-31T12:00:00Z", text);
}

function ageOrTime(text: string, now: number): number | undefined {
  if (AGO.test(text)) {
    const parts = [...text.matchAll(/(\d+)([smhd])/g)];
    return now - parts.reduce((sum, [, count, unit = "s"]) => sum + Number(count) * (UNIT_MS[unit] ?? 0), 0);
  }
  const at = RFC_3339.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

function refuse(field: string, forms: string, text: string): never {
  throw new HibernautError(
    "invalid_argument",
    `\`${field}\` must be ${forms}, or how long ago, such as 30s, 10m, 2h or 1d; not \`${text.slice(0, 100)}\`.`,
    { field },
  );
}
