/** What is stored about volumes: disks of an app that outlive its machines. */
import type { MachineConfig } from "./config.ts";

/** A volume or a snapshot is `creating` until it is whole, and `destroying` until its files are gone. */
type VolumeState = "creating" | "created" | "destroying";

/** All that is stored about a volume. Times are RFC 3339 in UTC. */
export interface VolumeRecord {
  /** `vol_` and 16 hex digits: also the serial number of its disk, which has room for no more. */
  id: string;
  app: string;
  /** Several volumes of an app may have the same name. */
  name: string;
  /** What it has from its machine's next cold start on. */
  sizeGb: number;
  state: VolumeState;
  /** Days that its snapshots are kept. */
  snapshotRetention: number;
  createdAt: string;
}

/** A point-in-time copy of a volume. */
export interface VolumeSnapshotRecord {
  /** `vs_` and 16 hex digits. */
  id: string;
  volumeId: string;
  /** Size of the volume when it was taken. */
  sizeGb: number;
  /** What the copy takes on the disk, where it shares nothing with the volume. */
  sizeBytes: number;
  state: VolumeState;
  createdAt: string;
}

/** Where a machine mounts a volume. */
export type Mount = NonNullable<MachineConfig["mounts"]>[number];
