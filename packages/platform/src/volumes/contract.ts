/** What machines, the API and the store know of volumes: disks of an app's own that outlive its machines. */
import type { Mount, VolumeRecord, VolumeSnapshotRecord } from "../domain/volume.ts";

/** A volume as others see it. */
export interface VolumeView extends VolumeRecord {
  /** The one machine that has it. */
  machineId: string | null;
}

/** Mounts with the ids of volumes that nobody else gets until it is disposed of. Store them before that. */
export interface HeldMounts extends Disposable {
  /** Undefined where none were asked for. */
  mounts: Mount[] | undefined;
}

/** A volume as a disk of a guest. */
export interface VolumeDisk {
  id: string;
  /** Absolute path. */
  file: string;
}

/** What machines ask of volumes. */
export interface MachineVolumes {
  /**
   * Finds a volume for each mount: the one with that id, or one with that name that the machine has, or a free one, or
   * a new one. `failed_precondition` when a volume belongs to another machine.
   */
  hold(app: string, mounts: readonly Mount[] | undefined, machineId?: string): Promise<HeldMounts>;
  /**
   * The disks for a guest that is about to be started, in the order of the mounts. Waits while one is being copied.
   * With `grow`, those that were extended get their new size: not under a guest that goes on where it stood.
   */
  disks(mounts: readonly Mount[] | undefined, options: { grow: boolean; signal: AbortSignal }): Promise<VolumeDisk[]>;
  /** An app's volumes, oldest first. */
  list(app: string): VolumeView[];
  /** With all their snapshots. */
  destroyAll(app: string): Promise<void>;
}

export interface CreateVolume {
  name: string;
  /** Default: that of the snapshot, or 1. */
  sizeGb?: number | undefined;
  /** Days; default: 5. */
  snapshotRetention?: number | undefined;
  /** Begin with the content of this snapshot of a volume of the app. */
  snapshotId?: string | undefined;
}

/** What the API may ask of volumes. Every call rejects (or throws) with a HibernautError. */
export interface VolumeService extends MachineVolumes {
  get(app: string, id: string): VolumeView;
  /** What a volume takes on the disk, in bytes; it grows with what was written. 0 before its file is whole. */
  usedBytes(volume: VolumeRecord): Promise<number>;
  create(app: string, wanted: CreateVolume): Promise<VolumeView>;
  /** Takes effect at the machine's next cold start; `needsRestart` says that one has to come first. */
  extend(app: string, id: string, sizeGb: number): { volume: VolumeView; needsRestart: boolean };
  /** With its snapshots. `failed_precondition` while a machine has it. */
  destroy(app: string, id: string): Promise<void>;
  /** Newest first, without those that are over their retention. */
  listSnapshots(app: string, id: string): Promise<VolumeSnapshotRecord[]>;
  /** The volume as it is now. `failed_precondition` when it is in use and the disk cannot clone files. */
  snapshot(app: string, id: string): Promise<VolumeSnapshotRecord>;
  destroySnapshot(app: string, id: string, snapshotId: string): Promise<void>;
}
