/** Changes that do not affect a machine's state: what an effect stores in its middle, and what is worth knowing. */
import type { MachineRecord } from "../../domain/machine.ts";
import type { Decision } from "./decision.ts";
import type { Milestone, Note } from "./events.ts";
import { unchanged } from "./step.ts";

/** In `coldReason` from the moment a snapshot is consumed until the next one is taken. */
export const CONSUMED = "snapshot_consumed";

/** Milestones count in any state: they are facts, even if the effect was superseded meanwhile. */
export function decideMilestone(record: MachineRecord, milestone: Milestone): Decision {
  const changed = (changes: Partial<MachineRecord>) => ({ record: { ...record, ...changes }, effect: null, tell: {} });
  switch (milestone.type) {
    case "snapshot_consumed":
      return changed({ snapshot: null, coldReason: CONSUMED });
    case "snapshot_refused":
      return changed({ snapshot: null, coldReason: milestone.reason });
    case "cold_start": {
      const { reason, address = record.address } = milestone;
      return changed({ resetLayer: false, coldReason: reason, address });
    }
  }
}

export function decideNote(record: MachineRecord, note: Note): Decision {
  switch (note.type) {
    case "keep_awake":
      return { record: { ...record, keepAwake: note.lease }, effect: null, tell: { followers: true } };
    case "plan_wake":
      return { record: { ...record, wakeAt: note.at }, effect: null, tell: { followers: true } };
    case "reachability":
      return reachability(record, note.why);
    case "stalled": {
      const log = note.why === null ? "The guest is running again." : `The guest is paused: ${note.why}.`;
      return { record: { ...record, stateReason: note.why }, effect: null, tell: { log }, bestEffort: true };
    }
    case "reason_over":
      if (record.stateReason !== note.reason) return unchanged(record);
      return { record: { ...record, stateReason: null }, effect: null, tell: {}, bestEffort: true };
  }
}

/** The app listens where its services do not say, or again where they do. A start in progress learns it by itself. */
function reachability(record: MachineRecord, why: string | null): Decision {
  const before = record.unreachable ?? null;
  if (record.state !== "running" || (why === null && before === null)) return unchanged(record);
  const stateReason = why ?? (record.stateReason === before ? null : record.stateReason);
  const next = { ...record, stateReason, unreachable: why };
  return { record: next, effect: null, tell: { followers: true }, bestEffort: true };
}
