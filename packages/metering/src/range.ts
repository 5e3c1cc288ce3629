/** Which days a question about usage is about. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import { DAY_MS, midnightOf } from "@hibernaut/domain/periods";

/** The longest range, in days: a year with a leap day. The number of periods to read stays bounded. */
export const MAX_DAYS = 366;
/** The range when nothing is said about it, in days. */
const DEFAULT_DAYS = 30;

/** Whole days in UTC, the last of which may not be over. All are milliseconds since 1970. */
export interface UsageRange {
  /** The first midnight. */
  since: number;
  /** The midnight after the last day. */
  end: number;
  /** Up to when usage is counted: the end, or now. */
  until: number;
}

/**
 * Returns the days that `from` and `to` are in. Usage is kept by day, so a day is counted as a whole. Throws
 * `invalid_argument` for a range that is turned around, longer than a year, or in the future.
 */
export function usageRange(
  { from, to }: { from?: number | undefined; to?: number | undefined },
  now: number,
): UsageRange {
  const today = midnightOf(now);
  const last = to ?? now;
  const first = from ?? last - DEFAULT_DAYS * DAY_MS;
  for (const [field, at] of [["from", first] as const, ["to", last] as const])
    if (at > today + DAY_MS)
      throw refusal(field, `\`${field}\` is in the future (${text(at)}). Usage is known up to now, ${text(now)}.`);
  if (first >= last && (from !== undefined || to !== undefined))
    throw refusal(
      "from",
      `\`from\` (${text(first)}) must be before \`to\` (${text(last)}). Choose an earlier \`from\` or a later \`to\`.`,
    );
  const since = midnightOf(first);
  const end = Math.ceil(last / DAY_MS) * DAY_MS;
  const days = (end - since) / DAY_MS;
  if (days > MAX_DAYS)
    throw refusal("from", `The range has ${days} days, and may have up to ${MAX_DAYS}. Ask for one year at a time.`);
  return { since, end, until: Math.max(since, Math.min(end, now)) };
}

function refusal(field: string, message: string): HibernautError {
  return new HibernautError("invalid_argument", message, { field });
}

function text(at: number): string {
  return Number.isFinite(at) && Math.abs(at) < 8.64e15 ? new Date(at).toISOString() : String(at);
}
