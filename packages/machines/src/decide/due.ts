/** Starts that nobody asks for at the moment: by a machine's schedule, and by a wake that the machine planned. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { withoutPeriod } from "@hibernaut/lib/text";
import { scheduleDue } from "../schedule/due.ts";
import { decideCommand } from "./commands.ts";
import type { DecideContext, Decision } from "./decision.ts";
import { mayHaveGuest, unchanged } from "./step.ts";

/** Whether the machine's schedule, or the wake that it planned, starts a guest now where there is none. */
export function startIsDue(record: MachineRecord, now: Date): boolean {
  if (mayHaveGuest(record.state) || record.state === "destroyed" || record.pooled === true) return false;
  const { wakeAt = null } = record;
  return scheduleDue(record, now)?.kind === "run" || (wakeAt !== null && Date.parse(wakeAt) <= now.getTime());
}

/**
 * Starts the machine if a run of its schedule is due. That the run was handled is stored with the start itself, so a
 * platform that ends in between neither repeats the run nor loses it.
 */
export function decideSchedule(record: MachineRecord, context: DecideContext): Decision {
  const { now } = context;
  const due = scheduleDue(record, now);
  if (due === undefined || due.kind === "wait") return unchanged(record);
  if (due.kind === "begin") return note({ ...record, scheduleHandled: now.toISOString() });
  const at = due.at.toISOString();
  const handled = { ...record, scheduleHandled: at };
  const details = { by: "schedule", due: at };
  const decision = decideCommand(handled, { type: "start", details }, context);
  if (!betweenRestarts(record) && decision.tell.history !== undefined) return decision;
  const { refusal } = decision.tell;
  const reason =
    refusal === undefined ? `it is ${record.state}: the run before is not over` : withoutPeriod(refusal.message);
  const updatedAt = now.toISOString();
  const history = { at: updatedAt, type: "schedule_skipped", from: record.state, to: record.state };
  return {
    record: { ...handled, updatedAt },
    effect: null,
    tell: { history: { ...history, details: { due: at, reason } }, followers: true },
  };
}

/** Wakes the machine if it sleeps at the time that it named. One that is awake by then has what it wanted. */
export function decideWake(record: MachineRecord, context: DecideContext): Decision {
  const at = record.wakeAt ?? null;
  if (at === null || record.pooled === true || Date.parse(at) > context.now.getTime()) return unchanged(record);
  const over = { ...record, wakeAt: null };
  if (record.state !== "suspended" && record.state !== "suspending") return note(over);
  const decision = decideCommand(over, { type: "start", details: { by: "wake", due: at } }, context);
  const { refusal, history } = decision.tell;
  // The machine sleeps on, and its log says why: another attempt every few seconds would say it every few seconds.
  if (refusal !== undefined)
    return { ...note(over), tell: { followers: true, log: `The planned wake is dropped. ${refusal.message}` } };
  return history === undefined ? note(over) : decision;
}

/** The app crashed, and the restart policy is about to start it again: its run is not over. */
function betweenRestarts({ state, goal }: MachineRecord): boolean {
  return state === "restarting" || goal === "restarting";
}

function note(record: MachineRecord): Decision {
  return { record, effect: null, tell: { followers: true } };
}
