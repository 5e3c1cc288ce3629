/** Changes that do not affect a machine's state: what an effect stores in its middle, and what is worth knowing. */
import type { MachineRecord, NotSuspended } from "../../domain/machine.ts";
import type { DecideContext, Decision } from "./decision.ts";
import type { Details, Milestone, Note } from "./events.ts";
import { isPrewarming } from "./prewarm.ts";
import { mayHaveGuest, unchanged } from "./step.ts";

/** In `coldReason` from the moment a snapshot is consumed until the next one is taken. */
export const CONSUMED = "snapshot_consumed";

/** Milestones count in any state: they are facts, even if the effect was superseded meanwhile. */
export function decideMilestone(record: MachineRecord, milestone: Milestone, now: Date): Decision {
  const changed = (changes: Partial<MachineRecord>) => ({ record: { ...record, ...changes }, effect: null, tell: {} });
  switch (milestone.type) {
    case "snapshot_consumed":
      return changed({ snapshot: null, coldReason: CONSUMED });
    case "snapshot_refused":
      return refusedSnapshot(record, milestone, now);
    case "cold_start": {
      const { reason, address = record.address, moved } = milestone;
      const move = moved === undefined ? {} : { ...moved, bundleMove: null };
      return changed({ resetLayer: false, keepLayer: null, coldReason: reason, address, ...move });
    }
  }
}

function refusedSnapshot(
  record: MachineRecord,
  { reason, carryOver }: Extract<Milestone, { type: "snapshot_refused" }>,
  now: Date,
): Decision {
  const next = { ...record, snapshot: null, coldReason: reason };
  if (carryOver === undefined) return { record: next, effect: null, tell: {} };
  const at = now.toISOString();
  const { state } = record;
  const history = { at, type: "carry_over_failed", from: state, to: state, details: { reason, ...carryOver } };
  return { record: { ...next, updatedAt: at }, effect: null, tell: { history } };
}

export function decideNote(record: MachineRecord, note: Note, context: DecideContext): Decision {
  switch (note.type) {
    case "keep_awake":
      return { record: { ...record, keepAwake: note.lease }, effect: null, tell: { followers: true } };
    case "plan_wake":
      return { record: { ...record, wakeAt: note.at }, effect: null, tell: { followers: true } };
    case "cordon": {
      if ((record.cordoned ?? false) === note.on) return unchanged(record);
      const log = note.on ? "The proxy sends it no requests from now on." : "The proxy sends it requests again.";
      return { record: { ...record, cordoned: note.on }, effect: null, tell: { followers: true, log } };
    }
    case "prepared":
      if (!isPrewarming(record) || record.prewarm.prepared) return unchanged(record);
      return told({ ...record, prewarm: { ...record.prewarm, prepared: true } });
    case "prewarm_over": {
      const { status, reason } = note;
      return isPrewarming(record)
        ? told({ ...record, prewarm: { ...record.prewarm, status, reason } })
        : unchanged(record);
    }
    case "reachability":
      return reachability(record, note.why);
    case "stalled": {
      const log = note.why === null ? "The guest is running again." : `The guest is paused: ${note.why}.`;
      return { record: { ...record, stateReason: note.why }, effect: null, tell: { log }, bestEffort: true };
    }
    case "reason_over":
      if (record.stateReason !== note.reason) return unchanged(record);
      return { record: { ...record, stateReason: null }, effect: null, tell: {}, bestEffort: true };
    case "not_suspended":
      return noteNotSuspended(record, { by: "drain", reason: note.reason }, context);
    case "drain_over":
      if (record.drained !== true && record.notSuspended?.by !== "drain") return unchanged(record);
      return { record: { ...record, drained: false, notSuspended: null }, effect: null, tell: {} };
  }
}

function told(record: MachineRecord): Decision {
  return { record, effect: null, tell: { followers: true } };
}

/** The machine should sleep, and keeps running. Its history says so once for each reason. */
export function noteNotSuspended(
  record: MachineRecord,
  why: NotSuspended,
  { now }: DecideContext,
  details: Details = {},
): Decision {
  const { notSuspended: known, state } = record;
  if (!mayHaveGuest(state) || (known?.by === why.by && known.reason === why.reason)) return unchanged(record);
  const at = now.toISOString();
  const history = { at, type: "not_suspended", from: state, to: state, details: { ...details, ...why } };
  return { record: { ...record, notSuspended: why, updatedAt: at }, effect: null, tell: { history, followers: true } };
}

/** The app listens where its services do not say, or again where they do. A start in progress learns it by itself. */
function reachability(record: MachineRecord, why: string | null): Decision {
  const before = record.unreachable ?? null;
  if (record.state !== "running" || (why === null && before === null)) return unchanged(record);
  const stateReason = why ?? (record.stateReason === before ? null : record.stateReason);
  const next = { ...record, stateReason, unreachable: why };
  return { record: next, effect: null, tell: { followers: true }, bestEffort: true };
}
