/** Changes that do not affect a machine's state: what an effect stores in its middle, and what is worth knowing. */
import { isDeepStrictEqual } from "node:util";
import { withEgress, withMetadata } from "@hibernaut/domain/config";
import { leaseFrom, liveLease, type MachineLease } from "@hibernaut/domain/lease";
import type { MachineRecord, NotSuspended } from "@hibernaut/domain/machine";
import type { MetadataChange } from "@hibernaut/domain/metadata";
import type { DecideContext, Decision } from "./decision.ts";
import type { Details, Milestone, Note, RemarkName, Restored } from "./events.ts";
import { isPrewarming } from "./prewarm.ts";
import { mayHaveGuest, remarked, unchanged } from "./step.ts";

/** In `coldReason` from the moment a snapshot is consumed until the next one is taken. */
export const CONSUMED = "snapshot_consumed";

/** Keys of metadata that one entry of the history names: 1 KiB of them, of which the stream of events keeps 100,000 entries. */
const MOST_KEYS_NAMED = 16;

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
    case "cordon":
      if ((record.cordoned ?? false) === note.on) return unchanged(record);
      return remarked({ ...record, cordoned: note.on }, { type: note.on ? "cordoned" : "uncordoned" }, context);
    case "taken":
      return taken(record, note, context);
    case "egress": {
      const config = withEgress(record.config, note.egress);
      // An update that was asked for before brings its own configuration, and must not undo this.
      const pending = record.pending && { ...record.pending, config: withEgress(record.pending.config, note.egress) };
      if (isDeepStrictEqual([config, pending], [record.config, record.pending])) return unchanged(record);
      return remarked(
        { ...record, config, pending },
        { type: "egress_changed", details: { egress: note.egress } },
        context,
      );
    }
    case "egress_refused": {
      const { record: next, tell } = remarked(record, { type: "egress_refused", details: note.details }, context);
      return { record: next, effect: null, tell: { history: tell.history }, bestEffort: true, unsynced: true };
    }
    case "signal_sent": {
      const remark = { type: "signal_sent" as const, details: { signal: note.signal } };
      const { record: next, tell } = remarked(record, remark, context);
      // It has been sent, and nothing else about the machine is different.
      return { record: next, effect: null, tell: { history: tell.history }, bestEffort: true };
    }
    case "lease":
      return leased(record, note.lease, context);
    case "lease_over": {
      const { lease } = record;
      if (!lease) return unchanged(record);
      const type = note.forced ? "lease_cleared" : "lease_released";
      return remarked({ ...record, lease: null }, { type, details: { owner: lease.owner } }, context);
    }
    case "metadata":
      return metadata(record, note.change, context);
    case "sandbox":
      return { record: { ...record, sandbox: note.sandbox }, effect: null, tell: { followers: true } };
    case "restored":
      return restored(record, note.becomes, context);
    case "prepared":
      if (!isPrewarming(record) || record.prewarm.prepared) return unchanged(record);
      return told({ ...record, prewarm: { ...record.prewarm, prepared: true } });
    case "prewarm_over": {
      const { status, reason } = note;
      if (!isPrewarming(record)) return unchanged(record);
      const next = { ...record, prewarm: { ...record.prewarm, status, reason } };
      return remarked(next, { type: "prewarm_ended", details: { status, reason } }, context);
    }
    case "reachability":
      return reachability(record, note.why, context);
    case "stalled": {
      const { why } = note;
      if (record.stateReason === why) return unchanged(record);
      const remark = why === null ? { type: "stall_ended" as const } : because("stalled", why);
      return { ...remarked({ ...record, stateReason: why }, remark, context), bestEffort: true };
    }
    case "reason_over": {
      if (record.stateReason !== note.reason) return unchanged(record);
      const remark = { type: "reason_ended" as const, details: { was: note.reason } };
      return { ...remarked({ ...record, stateReason: null }, remark, context), bestEffort: true };
    }
    case "kept_over": {
      // A start or a stop that came first tells more.
      if (record.state !== "suspended") return unchanged(record);
      const { record: next, tell } = remarked(record, because("kept_ended", note.reason), context);
      // Proxies and those who wait for a state have no use for it, and nobody loses anything with it.
      return { record: next, effect: null, tell: { history: tell.history }, bestEffort: true, unsynced: true };
    }
    case "not_suspended":
      return noteNotSuspended(record, { by: "drain", reason: note.reason }, context);
    case "drain_over":
      if (record.drained !== true && record.notSuspended?.by !== "drain") return unchanged(record);
      return { record: { ...record, drained: false, notSuspended: null }, effect: null, tell: {} };
  }
}

/** Renewals are not in the history: a client that holds a lease for long would fill it. */
function leased(record: MachineRecord, lease: MachineLease, context: DecideContext): Decision {
  const next = { ...record, lease };
  const before = liveLease(record.lease, context.now);
  if (before?.nonceHash === lease.nonceHash) return { record: next, effect: null, tell: {} };
  const { owner, expiresAt } = lease;
  return remarked(next, { type: "lease_taken", details: { owner, expires_at: expiresAt } }, context);
}

/** The history names keys: their values may be long. */
function metadata(record: MachineRecord, change: MetadataChange, context: DecideContext): Decision {
  const config = withMetadata(record.config, change);
  // As for the rules of what it connects to, above.
  const pending = record.pending && { ...record.pending, config: withMetadata(record.pending.config, change) };
  if (isDeepStrictEqual([config, pending], [record.config, record.pending])) return unchanged(record);
  const names = Object.keys(change);
  const keys = names.slice(0, MOST_KEYS_NAMED);
  const details = { keys, ...(names.length > keys.length && { more_keys: names.length - keys.length }) };
  return remarked({ ...record, config, pending }, { type: "metadata_changed", details }, context);
}

/** From now on it is a machine like any other. Its schedule counts from now, too. */
function taken(
  record: MachineRecord,
  { name, cordoned, egress, sandbox, lease }: Extract<Note, { type: "taken" }>,
  context: DecideContext,
): Decision {
  const { pooled, ...machine } = record;
  if (pooled !== true) return unchanged(record);
  const scheduleHandled = record.config.schedule === undefined ? null : context.now.toISOString();
  const details = { template: record.origin?.template };
  return remarked(
    {
      ...{ ...machine, name, cordoned, scheduleHandled, wakeAt: null, keepAwake: null },
      ...(egress !== undefined && { config: withEgress(record.config, egress) }),
      ...(sandbox !== undefined && { sandbox }),
      ...(lease !== undefined && { lease: leaseFrom(lease, context.now) }),
    },
    { type: "taken", details },
    context,
  );
}

/** Only for a machine at rest, or one that runs. It sleeps, and wakes as another one's memory does. */
function restored(record: MachineRecord, becomes: Restored, { now }: DecideContext): Decision {
  const at = now.toISOString();
  const over = {
    goal: null,
    pending: null,
    bundleMove: null,
    prewarm: null,
    notSuspended: null,
    drained: false,
  } as const;
  const idle = {
    keepAwake: null,
    wakeAt: null,
    crash: null,
    restarts: 0,
    stateReason: null,
    unreachable: null,
  } as const;
  const disk = { coldReason: "", resetLayer: false, keepLayer: null } as const;
  const next = { ...record, ...over, ...idle, ...disk, ...becomes, state: "suspended", newborn: true } as const;
  const { origin } = becomes;
  const details = { template: origin?.template, machine_id: origin?.machine };
  const history = { at, type: "restored", from: record.state, to: "suspended", details } as const;
  const scheduleHandled = becomes.config.schedule === undefined ? null : at;
  return {
    record: { ...next, scheduleHandled, stateSince: at, updatedAt: at },
    effect: null,
    tell: { history, followers: true, memoryGone: true },
  };
}

function told(record: MachineRecord): Decision {
  return { record, effect: null, tell: { followers: true } };
}

/** The machine should sleep, and keeps running. Its history says so once for each reason. */
export function noteNotSuspended(
  record: MachineRecord,
  why: NotSuspended,
  context: DecideContext,
  details: Details = {},
): Decision {
  const { notSuspended: known, state } = record;
  if (!mayHaveGuest(state) || (known?.by === why.by && known.reason === why.reason)) return unchanged(record);
  const remark = { type: "not_suspended" as const, details: { ...details, ...why } };
  return remarked({ ...record, notSuspended: why }, remark, context);
}

/** The app listens where its services do not say, or again where they do. A start in progress learns it by itself. */
function reachability(record: MachineRecord, why: string | null, context: DecideContext): Decision {
  const before = record.unreachable ?? null;
  if (record.state !== "running" || (why === null && before === null)) return unchanged(record);
  const stateReason = why ?? (record.stateReason === before ? null : record.stateReason);
  if (why === before && stateReason === record.stateReason) return unchanged(record);
  const remark = why === null ? { type: "reachable" as const } : because("unreachable", why);
  return { ...remarked({ ...record, stateReason, unreachable: why }, remark, context), bestEffort: true };
}

function because<T extends RemarkName>(type: T, reason: string): { type: T; details: Details } {
  return { type, details: { reason } };
}
