/** When a target's backup is due, and when it is overdue. Pure. */
import { nextRun } from "@hibernaut/machines";

/** A backup that failed is tried again after this time, in milliseconds: the target may be back, and the next day is far. */
export const RETRY_MS = 60 * 60_000;
/** A backup that is this late, in milliseconds, is overdue, however rare the schedule makes backups. */
const LATE_MS = 24 * 60 * 60_000;
/** A clock that was set back by more than this, in milliseconds, makes stored times not to be believed. */
const LARGEST_STEP_BACK_MS = 24 * 60 * 60_000;

/** What is known of a target. Times are RFC 3339. */
export interface Past {
  /** Five fields, in UTC; null without a schedule. */
  schedule: string | null;
  /** Since when the schedule is what it is. */
  scheduledAt: string;
  lastSuccessAt: string | null;
  /** When the latest backup ended, and whether it failed. */
  lastEndedAt: string | null;
  failed: boolean;
}

/** When the next backup is due; it may be in the past. Undefined without a schedule. */
export function nextDue({ schedule, scheduledAt, lastEndedAt, failed }: Past, now: Date): Date | undefined {
  if (schedule === null) return undefined;
  const after = believed([scheduledAt, lastEndedAt], now);
  const next = nextRun({ cron: schedule, timezone: "UTC" }, after);
  if (!failed || lastEndedAt === null) return next;
  const again = new Date(after.getTime() + RETRY_MS);
  return next === undefined || again < next ? again : next;
}

/**
 * Whether the latest good backup is older than the schedule promises: the second run since then has passed, or the first a day
 * ago. Without a schedule, nothing was promised.
 */
export function isOverdue({ schedule, scheduledAt, lastSuccessAt }: Past, now: Date): boolean {
  if (schedule === null) return false;
  const cron = { cron: schedule, timezone: "UTC" };
  const first = nextRun(cron, believed([scheduledAt, lastSuccessAt], now));
  if (first === undefined) return false;
  const second = nextRun(cron, first)?.getTime() ?? Number.POSITIVE_INFINITY;
  return now.getTime() > Math.min(second, first.getTime() + LATE_MS);
}

/** The latest of some times, without those that are not real. */
function believed(times: readonly (string | null)[], now: Date): Date {
  const known = times.flatMap((time) => (time === null ? [] : [Date.parse(time)]));
  const real = known.filter((time) => time - now.getTime() <= LARGEST_STEP_BACK_MS);
  return new Date(real.length === 0 ? now.getTime() : Math.max(...real));
}
