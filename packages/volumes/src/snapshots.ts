/** Snapshots of volumes: copies at one moment. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { VolumeRecord, VolumeSnapshotRecord } from "@hibernaut/domain/volume";
import type { VolumeStore } from "@hibernaut/store";
import type { VolumeFiles } from "./files.ts";
import { isExpired, newId } from "./rules.ts";
import type { SerialQueues } from "./serial-queues.ts";

/** Pauses a running machine, its disks flushed, for the time of `work`. */
export type HoldStill = (machineId: string, work: () => Promise<void>) => Promise<void>;

interface SnapshotsOptions {
  store: VolumeStore;
  files: VolumeFiles;
  whilePaused: HoldStill;
  /** Work on one volume or one snapshot runs one at a time, by id. */
  queues: SerialQueues;
  machineOf(volumeId: string): MachineRecord | undefined;
  /** Whether the volume is being moved to another host with its snapshots, which stay as they are until then. */
  isHeld(volumeId: string): boolean;
  /** Throws when the app may not take this many bytes more of the disk. */
  requireDisk?: ((app: string, bytes: number) => void) | undefined;
}

/** How a volume is copied, depending on what its machine does. */
interface HowToCopy {
  /** Whether no guest has the disk, so that it does not change. */
  atRest: boolean;
  copy(from: string, to: string, signal?: AbortSignal): Promise<void>;
}

/** The snapshots of all volumes. */
export class VolumeSnapshots {
  readonly #options: SnapshotsOptions;

  /** What is being copied to another volume, by the volume that it is copied from. */
  readonly #copying = new Map<string, AbortController>();

  constructor(options: SnapshotsOptions) {
    this.#options = options;
  }

  /** Removes snapshots of the volume that were not finished. */
  async recover(volume: VolumeRecord): Promise<void> {
    for (const snapshot of this.#options.store.listSnapshots(volume.id))
      if (snapshot.state !== "created") await this.#remove(snapshot);
  }

  /** Lists a volume's snapshots, newest first, after deleting those that are past their retention. */
  async list(volume: VolumeRecord): Promise<VolumeSnapshotRecord[]> {
    await this.expire(volume);
    return this.#options.store.listSnapshots(volume.id);
  }

  /** Deletes a volume's snapshots that are past their retention. */
  async expire(volume: VolumeRecord): Promise<void> {
    if (this.#options.isHeld(volume.id)) return;
    const now = Date.now();
    for (const snapshot of this.#options.store.listSnapshots(volume.id))
      if (snapshot.state === "created" && isExpired(snapshot, volume, now)) await this.#destroy(snapshot);
  }

  /** Takes a snapshot of the volume as it is now. */
  async create(volume: VolumeRecord): Promise<VolumeSnapshotRecord> {
    return this.#options.queues.run(volume.id, async () => this.#create(volume, await this.#howToCopy(volume.id)));
  }

  /**
   * Takes a snapshot unless the disk is at rest and `known` says that it is not needed; undefined then. Returns its id and
   * what the disk looked like to the host, null if it was being written. Rejects with the signal's reason when aborted,
   * which also ends a copy.
   */
  async createUnless(
    volume: VolumeRecord,
    known: (disk: string) => boolean,
    signal: AbortSignal,
  ): Promise<{ id: string; disk: string | null } | undefined> {
    const { files, queues } = this.#options;
    return queues.run(volume.id, async () => {
      signal.throwIfAborted();
      const how = await this.#howToCopy(volume.id);
      const disk = how.atRest ? await files.stamp(files.disk(volume.id)) : null;
      if (disk !== null && known(disk)) return undefined;
      const { id } = await this.#create(volume, how, signal);
      return { id, disk };
    });
  }

  /** Call it in the volume's queue: a start of its machine waits for that, so the machine's state does not change meanwhile. */
  async #create(volume: VolumeRecord, { copy }: HowToCopy, signal?: AbortSignal): Promise<VolumeSnapshotRecord> {
    const { store, files, requireDisk } = this.#options;
    const { sizeGb, id: volumeId } = store.get(volume.id) ?? fail(`Volume ${volume.id} no longer exists.`);
    const createdAt = new Date().toISOString();
    const begun: VolumeSnapshotRecord = {
      id: newId("vs"),
      volumeId,
      sizeGb,
      sizeBytes: 0,
      state: "creating",
      createdAt,
    };
    // A clone takes nothing at first, and as much as the volume in the end.
    requireDisk?.(volume.app, await files.sizeBytes(files.disk(volumeId)));
    const path = files.snapshot(volumeId, begun.id);
    store.insertSnapshot(begun);
    try {
      await copy(files.disk(volumeId), path, signal);
      const done: VolumeSnapshotRecord = { ...begun, sizeBytes: await files.sizeBytes(path), state: "created" };
      store.updateSnapshot(done);
      return done;
    } catch (error) {
      await this.#remove(begun);
      signal?.throwIfAborted();
      throw error;
    }
  }

  /** Deletes a snapshot of the volume. */
  async destroy(volume: VolumeRecord, id: string): Promise<void> {
    const snapshot = this.#options.store.getSnapshot(id);
    if (snapshot?.volumeId !== volume.id) throw noSnapshot(id);
    await this.#destroy(snapshot);
  }

  /** Finds a snapshot of any of the app's volumes. */
  find(app: string, id: string): VolumeSnapshotRecord {
    const { store } = this.#options;
    const snapshot = store.getSnapshot(id);
    if (snapshot === undefined || store.get(snapshot.volumeId)?.app !== app) throw noSnapshot(id);
    return snapshot;
  }

  /** Copies a snapshot to the disk of another volume. */
  async restore({ id }: VolumeSnapshotRecord, volumeId: string): Promise<void> {
    const { store, files, queues } = this.#options;
    await queues.run(id, async () => {
      const snapshot = store.getSnapshot(id);
      if (snapshot?.state !== "created") throw noSnapshot(id);
      await files.copy(files.snapshot(snapshot.volumeId, id), files.disk(volumeId));
    });
  }

  /** Copies a volume as it is now to the disk of another one. Rejects with `aborted` when its machine starts meanwhile. */
  async copy({ id }: VolumeRecord, volumeId: string): Promise<void> {
    const { files, queues } = this.#options;
    await queues.run(id, async () => {
      const { copy } = await this.#howToCopy(id, `Volume ${id} cannot be copied`);
      const giveWay = new AbortController();
      this.#copying.set(id, giveWay);
      try {
        await copy(files.disk(id), files.disk(volumeId), giveWay.signal);
      } catch (error) {
        giveWay.signal.throwIfAborted();
        throw error;
      } finally {
        this.#copying.delete(id);
      }
    });
  }

  /** A machine is about to start with the volume: it does not wait for a copy that is for another app. */
  giveWay(id: string): void {
    const message = `Volume ${id} was not copied, because its machine started meanwhile. Try again when it sleeps.`;
    this.#copying.get(id)?.abort(new HibernautError("aborted", message, { volume_id: id }));
  }

  /** Deletes all snapshots of a volume that is being deleted. */
  async forget(volume: VolumeRecord): Promise<void> {
    for (const snapshot of this.#options.store.listSnapshots(volume.id)) await this.#destroy(snapshot);
  }

  /** Decides how to copy: at leisure when nothing writes to the disk, otherwise by a clone while the machine is paused. */
  async #howToCopy(volumeId: string, refusal = `No snapshot of volume ${volumeId} can be taken`): Promise<HowToCopy> {
    const { files, whilePaused, machineOf } = this.#options;
    const machine = machineOf(volumeId);
    if (machine === undefined || ["created", "stopped", "suspended", "failed"].includes(machine.state))
      return { atRest: true, copy: (from, to, signal) => files.copy(from, to, signal) };
    const refuse = (why: string) =>
      new HibernautError("failed_precondition", `${refusal}: ${why}`, {
        volume_id: volumeId,
        machine_id: machine.id,
        state: machine.state,
      });
    if (machine.state !== "running")
      throw refuse(`its machine ${machine.id} is ${machine.state}. Try again in a moment.`);
    if (await files.canClone())
      return { atRest: false, copy: (from, to) => whilePaused(machine.id, () => files.clone(from, to)) };
    throw refuse(
      `its machine ${machine.id} is running, and the file system of ${files.root} cannot clone files (btrfs and XFS can). Suspend or stop the machine and try again.`,
    );
  }

  async #destroy(snapshot: VolumeSnapshotRecord): Promise<void> {
    const { store, queues } = this.#options;
    store.updateSnapshot({ ...snapshot, state: "destroying" });
    await queues.run(snapshot.id, () => this.#remove(snapshot));
  }

  async #remove({ id, volumeId }: VolumeSnapshotRecord): Promise<void> {
    await this.#options.files.removeSnapshot(volumeId, id);
    this.#options.store.removeSnapshot(id);
  }
}

function fail(message: string): never {
  throw new HibernautError("not_found", message);
}

function noSnapshot(id: string): HibernautError {
  const message = `There is no volume snapshot ${id.slice(0, 40)}. See \`hibernaut volumes snapshots list <volume id>\`.`;
  return new HibernautError("not_found", message, { snapshot_id: id });
}
