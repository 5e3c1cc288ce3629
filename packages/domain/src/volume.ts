/** The records that are stored about volumes, the disks of an app that outlive its machines. */
import type { MachineConfig } from "./config.ts";

/** A volume or a volume snapshot is `creating` until it is complete, and `destroying` until its files are deleted. */
type VolumeState = "creating" | "created" | "destroying";

/** Everything that is stored about a volume. Times are RFC 3339 in UTC. */
export interface VolumeRecord {
  /** `vol_` and 16 hex digits. Also the serial number of the disk, which has room for 20 characters. */
  id: string;
  app: string;
  /** Several volumes of an app may have the same name. */
  name: string;
  /** The size from the machine's next cold start on. */
  sizeGb: number;
  state: VolumeState;
  /** How long snapshots are kept, in days. */
  snapshotRetention: number;
  /** The snapshots that the platform takes by itself. Absent or null when it takes none. */
  schedule?: SnapshotSchedule | null;
  createdAt: string;
  /** How often it has changed hosts in a cluster: of two copies, the one with the higher number is newer. Absent: never. */
  epoch?: number;
}

/** How far the scheduled snapshots of a volume have come. Times are RFC 3339. */
export interface SnapshotSchedule {
  /** Since when there is a schedule. The first snapshot is due within one interval. */
  since: string;
  /** When a snapshot was last taken, or found not to be needed. Null before the first time. */
  handledAt: string | null;
  /** The latest snapshot, and what the disk looked like to the host then; null if it was being written. */
  latest: { id: string; at: string; disk: string | null } | null;
  /** The tries that failed since. Null when the last one did not. */
  trouble: { failures: number; at: string; reason: string } | null;
}

/** A copy of a volume at one moment. */
export interface VolumeSnapshotRecord {
  /** `vs_` and 16 hex digits. */
  id: string;
  volumeId: string;
  /** Size of the volume when the snapshot was taken. */
  sizeGb: number;
  /** Space that the copy takes up on the disk if it shares no blocks with the volume. */
  sizeBytes: number;
  state: VolumeState;
  createdAt: string;
}

/** Where a machine mounts a volume. */
export type Mount = NonNullable<MachineConfig["mounts"]>[number];

/** Returns the epoch of a volume on the next host that has it. */
export function nextEpoch({ epoch = 0 }: Pick<VolumeRecord, "epoch">): number {
  return epoch + 1;
}
