/** What is due: pure functions of what is stored and the time. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { lastRun, nextRun, type Schedule, scheduleOf } from "./runs.ts";

/**
 * A clock that was set back by up to this much repeats no run: runs continue with the first that was not handled. After
 * a larger step, the handled time was never real (a clock without a battery, for example), and waiting for it could
 * take years. A day covers a clock that was set to the wrong time zone.
 */
const LARGEST_STEP_BACK_MS = 24 * 60 * 60_000;

/** What to do about a schedule now. */
export type Due =
  | { kind: "wait"; next: Date | undefined }
  /** The last run that is due; those before it were missed, and are not made up for one by one. */
  | { kind: "run"; at: Date }
  /** The handled time is missing, or not to be believed: the schedule counts from now on. */
  | { kind: "begin" };

/** Decides what a schedule asks for, by the last due time that was handled and the present time. */
export function dueOf(schedule: Schedule, handled: Date | undefined, now: Date): Due {
  if (handled === undefined || handled.getTime() - now.getTime() > LARGEST_STEP_BACK_MS) return { kind: "begin" };
  const next = nextRun(schedule, handled);
  if (next === undefined || next > now) return { kind: "wait", next };
  return { kind: "run", at: lastRun(schedule, now) ?? next };
}

/** The same for a machine; undefined if it has no schedule, waits in a pool, or is being destroyed. */
export function scheduleDue(record: MachineRecord, now: Date): Due | undefined {
  if (isGone(record) || record.pooled === true) return undefined;
  const schedule = scheduleOf(record.config, new Date(record.createdAt));
  const handled = record.scheduleHandled ?? undefined;
  return schedule && dueOf(schedule, handled === undefined ? undefined : new Date(handled), now);
}

/** Returns when the schedule starts the machine next; now if that is due. Undefined if it never does. */
export function nextScheduled(record: MachineRecord, now: Date): Date | undefined {
  const due = scheduleDue(record, now);
  if (due?.kind === "wait") return due.next;
  if (due?.kind === "run") return now;
  const schedule = due && scheduleOf(record.config, new Date(record.createdAt));
  return schedule && nextRun(schedule, now);
}

/** Returns when the machine has to be looked at next, for its schedule or a planned wake. Undefined for never. */
export function nextLook(record: MachineRecord, now: Date): Date | undefined {
  const due = scheduleDue(record, now);
  const run = due?.kind === "wait" ? due.next : due && now;
  const wake = isGone(record) || record.pooled === true || !record.wakeAt ? undefined : new Date(record.wakeAt);
  if (run === undefined || wake === undefined) return run ?? wake;
  return run < wake ? run : wake;
}

function isGone({ state }: MachineRecord): boolean {
  return state === "destroying" || state === "destroyed";
}
