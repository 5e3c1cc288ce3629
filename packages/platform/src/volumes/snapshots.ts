/** Point-in-time copies of volumes. */
import { HibernautError } from "../domain/errors.ts";
import type { MachineRecord } from "../domain/machine.ts";
import type { VolumeStore } from "../store/contract.ts";
import type { VolumeRecord, VolumeSnapshotRecord } from "../domain/volume.ts";
import type { VolumeFiles } from "./files.ts";
import { isExpired, newId } from "./rules.ts";
import type { Turns } from "./turns.ts";

/** Has a running machine stand still with its disks flushed while `work` goes on. */
export type HoldStill = (machineId: string, work: () => Promise<void>) => Promise<void>;

interface SnapshotsOptions {
  store: VolumeStore;
  files: VolumeFiles;
  holdStill: HoldStill;
  turns: Turns;
  machineOf(volumeId: string): MachineRecord | undefined;
}

export class VolumeSnapshots {
  readonly #options: SnapshotsOptions;

  constructor(options: SnapshotsOptions) {
    this.#options = options;
  }

  /** Takes away what was not finished. */
  async recover(volume: VolumeRecord): Promise<void> {
    for (const snapshot of this.#options.store.listSnapshots(volume.id))
      if (snapshot.state !== "created") await this.#remove(snapshot);
  }

  async list(volume: VolumeRecord): Promise<VolumeSnapshotRecord[]> {
    await this.expire(volume);
    return this.#options.store.listSnapshots(volume.id);
  }

  async expire(volume: VolumeRecord): Promise<void> {
    const now = Date.now();
    for (const snapshot of this.#options.store.listSnapshots(volume.id))
      if (snapshot.state === "created" && isExpired(snapshot, volume, now)) await this.#destroy(snapshot);
  }

  async create(volume: VolumeRecord): Promise<VolumeSnapshotRecord> {
    const { store, files, turns } = this.#options;
    // A start of its machine waits for this turn, so what is found now stays so.
    return turns.take(volume.id, async () => {
      const copy = await this.#howToCopy(volume.id);
      const { sizeGb, id: volumeId } = store.get(volume.id) ?? fail(`Volume ${volume.id} is gone.`);
      const createdAt = new Date().toISOString();
      const begun: VolumeSnapshotRecord = {
        id: newId("vs"),
        volumeId,
        sizeGb,
        sizeBytes: 0,
        state: "creating",
        createdAt,
      };
      const path = files.snapshot(volumeId, begun.id);
      store.insertSnapshot(begun);
      try {
        await copy(files.disk(volumeId), path);
        const done: VolumeSnapshotRecord = { ...begun, sizeBytes: await files.sizeBytes(path), state: "created" };
        store.updateSnapshot(done);
        return done;
      } catch (error) {
        await this.#remove(begun);
        throw error;
      }
    });
  }

  async destroy(volume: VolumeRecord, id: string): Promise<void> {
    const snapshot = this.#options.store.getSnapshot(id);
    if (snapshot?.volumeId !== volume.id) throw noSnapshot(id);
    await this.#destroy(snapshot);
  }

  /** A whole snapshot of the app's. */
  find(app: string, id: string): VolumeSnapshotRecord {
    const { store } = this.#options;
    const snapshot = store.getSnapshot(id);
    if (snapshot === undefined || store.get(snapshot.volumeId)?.app !== app) throw noSnapshot(id);
    return snapshot;
  }

  /** The snapshot's content as the disk of another volume. */
  async restore({ id }: VolumeSnapshotRecord, volumeId: string): Promise<void> {
    const { store, files, turns } = this.#options;
    await turns.take(id, async () => {
      const snapshot = store.getSnapshot(id);
      if (snapshot?.state !== "created") throw noSnapshot(id);
      await files.copy(files.snapshot(snapshot.volumeId, id), files.disk(volumeId));
    });
  }

  /** Forgets all of a volume that is being deleted with its files. */
  async forget(volume: VolumeRecord): Promise<void> {
    for (const snapshot of this.#options.store.listSnapshots(volume.id)) await this.#destroy(snapshot);
  }

  /** A copy of what nobody writes to, or a clone in the moment in which a running machine is held still. */
  async #howToCopy(volumeId: string): Promise<(from: string, to: string) => Promise<void>> {
    const { files, holdStill, machineOf } = this.#options;
    const machine = machineOf(volumeId);
    if (machine === undefined || ["created", "stopped", "suspended", "failed"].includes(machine.state))
      return (from, to) => files.copy(from, to);
    const refuse = (why: string) =>
      new HibernautError("failed_precondition", `Volume ${volumeId} cannot be copied: ${why}`, {
        volume_id: volumeId,
        machine_id: machine.id,
        state: machine.state,
      });
    if (machine.state !== "running")
      throw refuse(`its machine ${machine.id} is ${machine.state}. Try again in a moment.`);
    if (await files.canClone()) return (from, to) => holdStill(machine.id, () => files.clone(from, to));
    throw refuse(
      `its machine ${machine.id} is running, and the file system of ${files.root} cannot clone files, as btrfs and XFS can. Suspend or stop the machine, and try again.`,
    );
  }

  async #destroy(snapshot: VolumeSnapshotRecord): Promise<void> {
    const { store, turns } = this.#options;
    store.updateSnapshot({ ...snapshot, state: "destroying" });
    await turns.take(snapshot.id, () => this.#remove(snapshot));
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
  const message = `There is no snapshot ${id.slice(0, 40)} of a volume. See \`hibernaut volumes snapshots list <volume id>\`.`;
  return new HibernautError("not_found", message, { snapshot_id: id });
}
