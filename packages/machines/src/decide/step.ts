/** From a table's answer to a decision: the new record, the effect with its input, and who learns of it. */
import type { HibernautError } from "@hibernaut/domain/errors";
import {
  inStateSince,
  isResting,
  type MachineEvent,
  type MachineRecord,
  type MachineState,
} from "@hibernaut/domain/machine";
import type { Answer } from "./answer.ts";
import type { DecideContext, Decision } from "./decision.ts";
import type { Effect } from "./effect.ts";
import type { Details, HistoryType, RemarkName } from "./events.ts";
import { isPrewarming } from "./prewarm.ts";

/** In any other state the guest has run since, or there is none: its snapshot is never kept. */
const SNAPSHOT_STATES: ReadonlySet<MachineState> = new Set([
  "suspended",
  "starting",
  "stopping",
  "updating",
  "destroying",
  "failed",
]);

/** In any other state, or with a start to follow, someone has decided about the machine since the drain suspended it. */
const DRAINED_STATES: ReadonlySet<MachineState> = new Set(["suspending", "suspended", "updating"]);

interface Step {
  type: HistoryType;
  answer: Exclude<Answer, { kind: "refuse" }>;
  /** What the event says about the machine apart from its state. */
  changes: Partial<MachineRecord>;
  details: Details;
}

/** Makes the step that a table allowed. When nothing changes, there is nothing to do or tell. */
export function step(
  record: MachineRecord,
  { type, answer, changes, details }: Step,
  context: DecideContext,
): Decision {
  const from = record.state;
  const to = answer.kind === "move" ? answer.to : from;
  // A goal or snapshot that changes is part of the history even where the state is not affected.
  const noted = from !== to || answer.goal !== record.goal || "snapshot" in changes;
  const next = { ...record, ...changes, state: to, goal: answer.goal };
  next.capturing = capturingIn(record, to, context);
  if (!mayHoldSnapshot(to)) next.snapshot = null;
  if (next.drained === true && !(DRAINED_STATES.has(to) && next.goal === null)) next.drained = false;
  if ((next.notSuspended ?? null) !== null && !mayHaveGuest(to)) next.notSuspended = null;
  if (sameFields(record, next)) return unchanged(record);
  const shown = next.crash !== record.crash || next.prewarm !== record.prewarm;
  if (!noted) return withoutStep(record, next, shown, context);
  const at = context.now.toISOString();
  next.updatedAt = at;
  if (from !== to) next.stateSince = at;
  const visible = from !== to || shown || next.snapshot !== record.snapshot;
  return {
    record: next,
    effect: answer.effect === null ? null : effectOf(answer.effect, record, next),
    tell: {
      history: { at, type, from, to, details },
      ...(visible && { followers: true }),
      ...(!mayHaveGuest(to) && next.snapshot === null && { memoryGone: true }),
    },
  };
}

/** An event that is not part of the history by itself. The end of a prewarm is. */
function withoutStep(record: MachineRecord, next: MachineRecord, shown: boolean, context: DecideContext): Decision {
  const prewarm = isPrewarming(record) && !isPrewarming(next) ? (next.prewarm ?? null) : null;
  if (prewarm === null) return { record: next, effect: null, tell: shown ? { followers: true } : {} };
  const { status, reason } = prewarm;
  return remarked(next, { type: "prewarm_ended", details: { status, reason } }, context);
}

/** A change that leaves the state as it is, and that the history tells. */
export function remarked(
  next: MachineRecord,
  { type, details = {} }: { type: RemarkName; details?: Details },
  { now }: Pick<DecideContext, "now">,
): Decision & { tell: { history: MachineEvent } } {
  const at = now.toISOString();
  const history = { at, type, from: next.state, to: next.state, details };
  return { record: { ...next, updatedAt: at }, effect: null, tell: { history, followers: true } };
}

export function unchanged(record: MachineRecord): Decision {
  return { record, effect: null, tell: {} };
}

export function refused(record: MachineRecord, refusal: HibernautError): Decision {
  return { record, effect: null, tell: { refusal } };
}

/** An effect with its input, for a machine that went from `before` to `after`. */
export function effectOf(name: Effect["type"], before: MachineRecord, after: MachineRecord): Effect {
  switch (name) {
    case "boot": {
      const rested = isResting(before.state) && before.state !== "running" && before.state !== "created";
      return { type: "boot", restedSince: rested ? inStateSince(before) : null, attempt: 1 };
    }
    case "back_off":
      return { type: "back_off", until: after.crash?.retry_at ?? null };
    case "capture":
      return { type: "capture", generation: after.capturing ?? "" };
    case "apply_update":
      return { type: "apply_update", patient: before.state === "stopping" };
    case "discard_snapshots":
      return { type: "discard_snapshots", memory: !mayHaveGuest(after.state) };
    default:
      return { type: name };
  }
}

/** Only a suspend in progress captures, and it keeps the generation that it began with. */
function capturingIn(record: MachineRecord, to: MachineState, { id }: DecideContext): string | null {
  if (to !== "suspending") return null;
  return record.state === "suspending" ? record.capturing : id;
}

export function mayHoldSnapshot(state: MachineState): boolean {
  return SNAPSHOT_STATES.has(state);
}

/** Whether a machine in this state may have a guest. */
export function mayHaveGuest(state: MachineState): boolean {
  return state === "running" || !(isResting(state) || state === "destroyed");
}

function sameFields(one: MachineRecord, other: MachineRecord): boolean {
  return (Object.keys(other) as (keyof MachineRecord)[]).every((key) => one[key] === other[key]);
}
