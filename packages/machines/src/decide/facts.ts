/** What outcomes say about a machine apart from its state. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { describeExit } from "../restart.ts";
import type { Boot, Details, EffectOutcome } from "./events.ts";
import { prewarmCaptured } from "./prewarm.ts";

type Facts = { changes: Partial<MachineRecord>; details: Details };

/** A new version begins with its image as it is: a layer over another image would mix the two. */
const FORGOTTEN = {
  snapshot: null,
  resetLayer: true,
  keepLayer: null,
  keepAwake: null,
  wakeAt: null,
} satisfies Partial<MachineRecord>;

/** What the record says about how a guest came up. However it did, it is this machine's own now. */
export function bootFacts(
  { newborn }: MachineRecord,
  { lastBoot, unreachable, stateReason }: Boot,
): Partial<MachineRecord> {
  return { lastBoot, unreachable, stateReason, ...(newborn === true && { newborn: false }) };
}

/** What an outcome changes in the record apart from state and goal, and what the history says about it. */
export function factsOf(
  record: MachineRecord,
  outcome: Exclude<EffectOutcome, { type: "start_killed" | "start_hindered" | "app_ended" | "lost" }>,
): Facts {
  switch (outcome.type) {
    case "started": {
      const { kind, duration_ms } = outcome.boot.lastBoot;
      return { changes: bootFacts(record, outcome.boot), details: { kind, duration_ms } };
    }
    case "captured":
      return capturedFacts(record, outcome);
    case "capture_cancelled":
      return { changes: {}, details: { reason: outcome.reason } };
    case "capture_failed":
      return {
        changes: { stateReason: `the last suspend failed: ${outcome.reason}` },
        details: { reason: outcome.reason },
      };
    case "halted":
      return haltedFacts(record, outcome);
    case "updated":
      return updatedFacts(record);
    case "update_failed":
      return { changes: { pending: null, stateReason: outcome.reason }, details: { reason: outcome.reason } };
    case "removed":
      return { changes: { pending: null }, details: {} };
    case "start_failed":
    case "start_refused":
    case "halt_failed":
    case "remove_failed":
      return { changes: { stateReason: outcome.reason }, details: { reason: outcome.reason } };
    case "retry":
      return { changes: {}, details: {} };
  }
}

function haltedFacts(record: MachineRecord, { exit }: Extract<EffectOutcome, { type: "halted" }>): Facts {
  const { keepLayer = null, config, resetLayer } = record;
  const kept = keepLayer !== null || config.keep_layer === true;
  const ended = exit === undefined ? null : describeExit(exit);
  const reason = keepLayer === null ? ended : `stopped while idle, because ${keepLayer}; its files are kept`;
  // A layer that is to be reset for another reason, such as an update, is not kept after all.
  const changes = { ...FORGOTTEN, resetLayer: resetLayer || !kept, coldReason: "stopped", stateReason: reason };
  const final = record.goal === "destroyed" ? { auto_destroy: true } : {};
  return {
    changes,
    details: { ...final, ...(ended !== null && { reason: ended }), ...(kept && { keep_layer: true }) },
  };
}

function capturedFacts(record: MachineRecord, { snapshot }: Extract<EffectOutcome, { type: "captured" }>): Facts {
  const coldReason = snapshot === null ? "snapshot_corrupt: the manifest cannot be read" : "";
  // The app worked until it slept, so earlier failures no longer count.
  const changes = { ...prewarmCaptured(record), snapshot, coldReason, stateReason: null, restarts: 0, crash: null };
  return { changes, details: snapshot === null ? {} : { size_bytes: snapshot.size_bytes } };
}

/** Puts the stored update in force. */
function updatedFacts(before: MachineRecord): Facts {
  const { pending } = before;
  if (pending === null) return { changes: {}, details: {} };
  const { config, version, imageDigest, bundleVersion, coldReason, requestedAt } = pending;
  // Stored by an earlier release, which discarded a snapshot by an update that changes nothing else.
  if (coldReason !== undefined)
    return { changes: { snapshot: null, pending: null, coldReason }, details: { reason: coldReason } };
  const applied = { config, version, imageDigest, bundleVersion, bundleMove: null, pending: null };
  // A new schedule counts from when it was set: what it would have started before was never missed.
  const rescheduled = sameSchedule(before.config, config) ? {} : { scheduleHandled: requestedAt ?? null };
  return {
    changes: { ...FORGOTTEN, ...applied, ...rescheduled, coldReason: "updated", stateReason: null },
    details: { version },
  };
}

function sameSchedule(one: MachineConfig, other: MachineConfig): boolean {
  return one.schedule === other.schedule && one.schedule_timezone === other.schedule_timezone;
}
