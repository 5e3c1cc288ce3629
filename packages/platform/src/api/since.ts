/** Moments as people name them. */
import { HibernautError } from "../domain/errors.ts";

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;
const DATE = /^\d{4}-\d\d-\d\d$/;
const AGO = /^(\d{1,9}[smhd]){1,4}$/;

/**
 * Milliseconds since 1970 of a time (RFC 3339), of the midnight (UTC) that begins a date, or of how long ago something is (`30s`, `10m`, `1h30m`, `7d`).
 * `invalid_argument` for anything else.
 */
export function sinceMs(text: string, now = Date.now()): number {
  return momentMs(text, "since", now);
}

/** The same for a parameter of any name. */
export function momentMs(text: string, field: string, now = Date.now()): number {
  if (AGO.test(text)) {
    const parts = [...text.matchAll(/(\d+)([smhd])/g)];
    return now - parts.reduce((sum, [, count, unit = "s"]) => sum + Number(count) * (UNIT_MS[unit] ?? 0), 0);
  }
  const at = RFC_3339.test(text) || DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw new HibernautError(
    "invalid_argument",
    `\`${field}\` must be a time such as 2026-01-31T12:00:00Z, a date such as 2026-01-31, or how long ago, such as 30s, 10m, 2h or 1d; not \`${text.slice(0, 100)}\`.`,
    { field },
  );
}
