/** A target as users see it. Pure. */
import type { Phase, TargetView } from "./contract.ts";
import { isOverdue, nextDue, type Past } from "./due.ts";
import { parseLocation } from "./location.ts";
import type { TargetRecord } from "./target-file.ts";

/** What is known of a target besides its record. */
interface Present {
  /** What happens there. */
  work: { phase: Phase; startedAt: string } | undefined;
  failures: number;
  now: Date;
}

/** Returns a target without what must stay secret. */
export function viewOf(target: TargetRecord, { work, failures, now }: Present): TargetView {
  const { name, url, addedAt, schedule, keep, last, lastSuccess, lastCheck, pruneError } = target;
  const past = pastOf(target);
  return {
    ...{ name, url, kind: parseLocation(url).kind, addedAt, schedule, keep, lastSuccess, lastCheck, pruneError },
    last: last && { ...last, changed: last.changed ?? [] },
    nextAt: nextDue(past, now)?.toISOString() ?? null,
    overdue: isOverdue(past, now),
    running: work === undefined ? null : { phase: work.phase, startedAt: work.startedAt },
    drillSchedule: target.drillSchedule ?? null,
    nextDrillAt: nextDrill(target, now)?.toISOString() ?? null,
    drills: target.drills ?? [],
    lastDrill: target.lastDrill ?? null,
    lastRestore: target.lastRestore ?? null,
    failures,
  };
}

/** When the target's next drill is due; it may be in the past. Undefined without a schedule. */
export function nextDrill(
  {
    drillSchedule = null,
    drillScheduledAt = "",
    drills = [],
  }: Pick<TargetRecord, "drillSchedule" | "drillScheduledAt" | "drills">,
  now: Date,
): Date | undefined {
  const lastEndedAt = drills[0]?.endedAt ?? null;
  return nextDue(
    { schedule: drillSchedule, scheduledAt: drillScheduledAt, lastEndedAt, lastSuccessAt: null, failed: false },
    now,
  );
}

/** Returns what decides when the target's backup is due. */
export function pastOf({ schedule, scheduledAt, last, lastSuccess }: TargetRecord): Past {
  return {
    ...{ schedule, scheduledAt, lastSuccessAt: lastSuccess?.at ?? null },
    ...{ lastEndedAt: last?.endedAt ?? null, failed: last?.state === "failed" },
  };
}
