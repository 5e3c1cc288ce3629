/** When the platform takes snapshots of volumes by itself: pure rules. Times are milliseconds since 1970. */
import { createHash } from "node:crypto";
import type { SnapshotSchedule, VolumeRecord } from "@hibernaut/domain/volume";

/** The first pause after a try that failed. Each further one is twice as long: the machine may sleep soon, or a disk be full. */
const RETRY_FIRST_MS = 5 * 60_000;
/** The longest pause. A day has room for many tries. */
const RETRY_LONGEST_MS = 60 * 60_000;

/** What to do about a volume's schedule now. */
type ScheduleStep =
  | { kind: "none" }
  | { kind: "take" }
  /** Look again at this time. */
  | { kind: "wait"; until: number };

/**
 * Decides what to do about a volume. Each volume has a time of its own in every interval, so that not all are copied at
 * once. A time that was missed is made up for, once, however many were missed.
 */
export function scheduleStep(
  { id, state, schedule = null }: Pick<VolumeRecord, "id" | "state" | "schedule">,
  { now, intervalMs }: { now: number; intervalMs: number },
): ScheduleStep {
  if (schedule === null || state !== "created") return { kind: "none" };
  const due = lastDue(id, { now, intervalMs });
  const next = { kind: "wait", until: due + intervalMs } as const;
  if (due <= past(schedule.handledAt ?? schedule.since, now)) return next;
  if (schedule.trouble === null) return { kind: "take" };
  const { failures, at } = schedule.trouble;
  const retry = past(at, now) + Math.min(RETRY_FIRST_MS * 2 ** (failures - 1), RETRY_LONGEST_MS);
  return retry <= now ? { kind: "take" } : { kind: "wait", until: retry };
}

/** The latest time, up to now, at which the volume is due. */
function lastDue(id: string, { now, intervalMs }: { now: number; intervalMs: number }): number {
  const offset = createHash("sha256").update(id).digest().readUIntBE(0, 6) % intervalMs;
  return Math.floor((now - offset) / intervalMs) * intervalMs + offset;
}

/** A time that has not come yet was written by a clock that was wrong. It counts as long past. */
function past(time: string, now: number): number {
  const at = Date.parse(time);
  return at <= now ? at : Number.NEGATIVE_INFINITY;
}

/** Returns the schedule of a volume that had none. */
export function newSchedule(now: Date): SnapshotSchedule {
  return { since: now.toISOString(), handledAt: null, latest: null, trouble: null };
}

/** Returns the schedule after a snapshot was taken; without one, after none was needed. */
export function afterSnapshot(
  schedule: SnapshotSchedule,
  now: Date,
  taken?: { id: string; disk: string | null },
): SnapshotSchedule {
  const at = now.toISOString();
  const latest = taken === undefined ? schedule.latest : { ...taken, at };
  return { ...schedule, handledAt: at, latest, trouble: null };
}

/** Returns the schedule after a try that failed. */
export function afterTrouble(schedule: SnapshotSchedule, now: Date, reason: string): SnapshotSchedule {
  const failures = (schedule.trouble?.failures ?? 0) + 1;
  return { ...schedule, trouble: { failures, at: now.toISOString(), reason } };
}

/** Whether the latest snapshot still is the whole truth: it exists, and the disk has not been written since. */
export function isUnchanged({ latest }: SnapshotSchedule, disk: string, exists: (id: string) => boolean): boolean {
  return latest !== null && latest.disk === disk && exists(latest.id);
}
