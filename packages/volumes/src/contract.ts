/** Volumes as machines and the API use them: disks of an app that outlive its machines. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Mount, VolumeRecord, VolumeSnapshotRecord } from "@hibernaut/domain/volume";

/** A volume together with the machine that has it. */
export interface VolumeView extends VolumeRecord {
  /** Null when no machine has the volume. */
  machineId: string | null;
  /** In a cluster, of a volume that no machine has: the host that has a newer copy. No machine gets this one. */
  newerOn?: string;
}

/** Mounts whose volumes are reserved until this is disposed of. Store the mounts before that. */
export interface HeldMounts extends Disposable {
  /** With the ids of the volumes. Undefined when no mounts were requested. */
  mounts: Mount[] | undefined;
}

/** A volume as a disk of a guest. */
export interface VolumeDisk {
  id: string;
  /** Absolute path. */
  file: string;
}

/** A volume that travels to another host together with its machine. */
export interface VolumePapers {
  volume: VolumeRecord;
  /** Its whole snapshots, oldest first, which travel along. */
  snapshots: VolumeSnapshotRecord[];
  /** What all of that takes up on the disk, in bytes. */
  bytes: number;
}

/** Volumes on their way from and to other hosts of a cluster. A volume's machine takes it along. */
export interface VolumeTravel {
  /** Where all files of volumes are: absolute. */
  readonly root: string;
  /** Returns the papers of the volumes that a machine has. */
  papers(machine: MachineRecord): Promise<VolumePapers[]>;
  /** The files that travel, relative to {@link root}. */
  paths(papers: readonly VolumePapers[]): string[];
  /**
   * Keeps everyone else from the volumes: they are neither changed nor copied until this is disposed of. Waits for copies
   * that are being made. Rejects with the signal's reason.
   */
  hold(ids: readonly string[], signal: AbortSignal): Promise<Disposable>;
  /** Whether a volume is stored here. */
  has(id: string): boolean;
  /** Whether what is here of a volume, if anything, is older than this epoch of it. */
  isOlder(volume: Required<Pick<VolumeRecord, "id" | "epoch">>): boolean;
  /** Why the volumes cannot come here, as a sentence without its end. Undefined when they can. */
  unfit(papers: readonly VolumePapers[]): Promise<string | undefined>;
  /** Rejects unless all files have arrived in a directory. */
  requireWhole(folder: string, papers: readonly VolumePapers[]): Promise<void>;
  /** Moves the files from the directory to their place. Safe to repeat. */
  place(folder: string, papers: readonly VolumePapers[]): Promise<void>;
  /** Stores volumes whose files are in place, with their next epochs. Call it in the transaction that stores their machine. */
  adopt(papers: readonly VolumePapers[]): void;
  /** The directory of a volume's files. */
  folder(id: string): string;
  /** Deletes the files of a volume. Safe to repeat. */
  removeFiles(id: string): Promise<void>;
  /** Forgets a volume that is another host's now. Call it in the transaction that forgets its machine. */
  forget(id: string): void;
}

/** What machines need from volumes. */
export interface MachineVolumes {
  readonly travel: VolumeTravel;
  /**
   * Reserves a volume for each mount: the one with that id, otherwise one with that name that the machine already has,
   * a free one or a new one. Rejects with `failed_precondition` when a volume belongs to another machine.
   */
  hold(app: string, mounts: readonly Mount[] | undefined, machineId?: string): Promise<HeldMounts>;
  /**
   * Returns the disks for a guest that is about to start, in the order of the mounts. Waits while a disk is being
   * copied. With `grow`, disks of extended volumes get their new size; a guest that resumes must find the old size.
   */
  disks(mounts: readonly Mount[] | undefined, options: { grow: boolean; signal: AbortSignal }): Promise<VolumeDisk[]>;
  /** Returns an id for a volume that is to be adopted. */
  newId(): string;
  /**
   * Makes a volume of a disk that exists, which is moved to its place. It must be durable, and on the file system of the data
   * directory. Rejects as the creation of a volume does, with the disk where it was or gone.
   */
  adopt(app: string, volume: AdoptedVolume, disk: string): Promise<VolumeView>;
  /** Lists an app's volumes, oldest first. */
  list(app: string): VolumeView[];
  /** Deletes a volume and its snapshots. Rejects with `failed_precondition` while a machine has the volume. */
  destroy(app: string, id: string): Promise<void>;
  /** Deletes all of an app's volumes and their snapshots. */
  destroyAll(app: string): Promise<void>;
}

/** A volume to create. */
export interface CreateVolume {
  name: string;
  /** Default: the size of the snapshot, or 1. */
  sizeGb?: number | undefined;
  /** How long snapshots are kept, in days. Default: 5. */
  snapshotRetention?: number | undefined;
  /** Whether the platform takes snapshots by itself. Default: as the platform's settings say. */
  scheduledSnapshots?: boolean | undefined;
  /** Start with the content of this snapshot, which must be of a volume of the same app. */
  snapshotId?: string | undefined;
  /** Start with the content of this volume, which must be of the same app, or of the app that it is a preview of. */
  sourceId?: string | undefined;
}

/** What is known of a volume whose disk comes from a backup. */
export type AdoptedVolume = Pick<VolumeRecord, "id" | "name" | "sizeGb" | "snapshotRetention" | "schedule">;

/** What a backup needs from volumes. */
export interface VolumeCopies {
  /**
   * Does `work` with the path of a volume's disk while no machine can start with it. False, without it, when a machine has
   * the volume, or when it is not whole or no longer there.
   */
  whileUnused(id: string, work: (disk: string) => Promise<void>): Promise<boolean>;
  /** The path of a volume snapshot's file, which never changes. */
  snapshotFile(snapshot: VolumeSnapshotRecord): string;
}

/** What the API needs from volumes. Calls throw, or reject with, a HibernautError. */
export interface VolumeService extends MachineVolumes {
  /** Finds a volume by its id, by its name if no other volume has it, or by the beginning of its id. */
  get(app: string, id: string): VolumeView;
  /** The space that a volume takes up on the disk, in bytes. Grows as the volume is written; 0 before its file is whole. */
  usedBytes(volume: VolumeRecord): Promise<number>;
  create(app: string, wanted: CreateVolume): Promise<VolumeView>;
  /** The volume that a new one of the app may be a copy of, which another app may have. Throws `not_found` for all others. */
  source(app: string, id: string): VolumeRecord;
  /** Changes how snapshots of a volume are taken and kept. What is absent stays as it is. */
  update(app: string, id: string, changes: Pick<CreateVolume, "snapshotRetention" | "scheduledSnapshots">): VolumeView;
  /** Makes a volume larger, from the machine's next cold start on. `needsRestart` is true when one is still to come. */
  extend(app: string, id: string, sizeGb: number): { volume: VolumeView; needsRestart: boolean };
  /** Lists a volume's snapshots, newest first, after deleting those that are past their retention. */
  listSnapshots(app: string, id: string): Promise<VolumeSnapshotRecord[]>;
  /**
   * Takes a snapshot of a volume as it is now. Rejects with `failed_precondition` when the volume is in use and the file
   * system cannot clone files.
   */
  snapshot(app: string, id: string): Promise<VolumeSnapshotRecord>;
  /** Deletes a snapshot. */
  destroySnapshot(app: string, id: string, snapshotId: string): Promise<void>;
}
