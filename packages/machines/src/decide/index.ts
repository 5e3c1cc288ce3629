/**
 * The lifecycle of a machine: one pure function from a record and an event to the new record, the work that follows,
 * and who learns of it. Nothing else in the platform decides about states.
 */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { decideCommand } from "./commands.ts";
import type { DecideContext, Decision } from "./decision.ts";
import { decideSchedule, decideWake } from "./due.ts";
import type { LifecycleEvent } from "./events.ts";
import { decideMilestone, decideNote } from "./notes.ts";
import { decideOutcome, decideSuperseded, failureOf } from "./outcomes.ts";
import { decideFound, decideTakenOver } from "./recovery.ts";

export type { DecideContext, Decision, TakeOver, Tell } from "./decision.ts";
export type { BootEffect, Effect, EffectWithOutcome } from "./effect.ts";
export {
  type Boot,
  COMMANDS,
  type Command,
  type Details,
  type EffectFailed,
  type EffectOutcome,
  type FoundOnHost,
  type HistoryType,
  type LifecycleEvent,
  type Milestone,
  type Moved,
  type Note,
  OUTCOMES,
  REMARKS,
  type RemarkName,
  type Restored,
  type TakenOver,
} from "./events.ts";

/** Decides what `event` does to the machine. Never throws, and never changes `record`: see {@link Decision}. */
export function decide(record: MachineRecord, event: LifecycleEvent, context: DecideContext): Decision {
  switch (event.type) {
    case "start":
    case "suspend":
    case "sleep":
    case "stop":
    case "restart":
    case "update":
    case "move_bundle":
    case "destroy":
    case "discard_snapshot":
      return decideCommand(record, event, context);
    case "snapshot_consumed":
    case "snapshot_refused":
    case "cold_start":
      return decideMilestone(record, event, context.now);
    case "keep_awake":
    case "reachability":
    case "stalled":
    case "reason_over":
    case "kept_over":
    case "not_suspended":
    case "drain_over":
    case "plan_wake":
    case "cordon":
    case "taken":
    case "egress":
    case "egress_refused":
    case "lease":
    case "lease_over":
    case "metadata":
    case "sandbox":
    case "signal_sent":
    case "restored":
    case "prepared":
    case "prewarm_over":
      return decideNote(record, event, context);
    case "schedule_due":
      return decideSchedule(record, context);
    case "wake_due":
      return decideWake(record, context);
    case "found":
      return decideFound(record, event);
    case "taken_over":
      return decideTakenOver(record, event, context);
    case "superseded":
      return decideSuperseded(record, event.outcome);
    case "effect_failed":
      return decideOutcome(record, failureOf(event.effect, event.reason), context);
    default:
      return decideOutcome(record, event, context);
  }
}
