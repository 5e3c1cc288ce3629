/** What a backup records about a machine: a pure rule. A machine is in a backup as it would be after a drain. */
import type { MachineEvent, MachineRecord, SnapshotRecord } from "@hibernaut/domain/machine";

/** What the backup has of a machine whose guest was paused for the copy. */
export type PausedMemory =
  /** Its memory, as this snapshot. */
  | { snapshot: SnapshotRecord }
  /** Only its disks; `reason` says why. */
  | { snapshot: null; reason: string };

/** A machine's record for the restored platform, and the event that explains it. */
export interface BackedUp {
  record: MachineRecord;
  /** Undefined when the record is the machine's own. */
  event: MachineEvent | undefined;
}

/**
 * Returns the record of a machine that was running when it was copied. In the backup, it sleeps, or is stopped if its
 * memory is not in it, and starts again when a restored platform does.
 */
export function backedUp(record: MachineRecord, memory: PausedMemory, now: Date): BackedUp {
  const at = now.toISOString();
  const base = {
    ...record,
    goal: null,
    capturing: null,
    drained: true,
    notSuspended: null,
    stateSince: at,
    updatedAt: at,
  };
  if (memory.snapshot !== null) {
    const event = { at, type: "captured", from: record.state, to: "suspended" as const, details: { by: "backup" } };
    return { record: { ...base, state: "suspended", snapshot: memory.snapshot, stateReason: null }, event };
  }
  const { reason } = memory;
  const stopped: MachineRecord = {
    ...base,
    state: "stopped",
    snapshot: null,
    coldReason: `backup_without_memory: ${reason}`,
    // The disks are those of a guest that runs on: like after a power cut, nothing on them is given up.
    resetLayer: false,
    keepLayer: null,
    stateReason: `a backup has its disks without its memory: ${reason}`,
  };
  const event = { at, type: "halted", from: record.state, to: "stopped" as const, details: { by: "backup", reason } };
  return { record: stopped, event };
}
