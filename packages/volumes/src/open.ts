/** Volumes on the host's disk: the implementation of {@link VolumeService}. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { wantedOf } from "@hibernaut/domain/mounts";
import { findNamed } from "@hibernaut/domain/naming";
import { isPreviewOf } from "@hibernaut/domain/preview";
import type { Mount, VolumeRecord, VolumeSnapshotRecord } from "@hibernaut/domain/volume";
import type { Store } from "@hibernaut/store";
import { Attachments } from "./attachments.ts";
import type {
  AdoptedVolume,
  CreateVolume,
  HeldMounts,
  VolumeCopies,
  VolumeDisk,
  VolumeService,
  VolumeView,
} from "./contract.ts";
import type { VolumeFiles } from "./files.ts";
import { checkName, DEFAULT_RETENTION_DAYS, DEFAULT_SIZE_GB, newId, newVolume } from "./rules.ts";
import { newSchedule } from "./schedule.ts";
import { SnapshotScheduler } from "./scheduler.ts";
import { SerialQueues } from "./serial-queues.ts";
import { type HoldStill, VolumeSnapshots } from "./snapshots.ts";
import { Travel } from "./travel.ts";

const GB = 1024 ** 3;
const DAY_MS = 24 * 60 * 60_000;

/** What {@link Volumes} works with. */
export interface VolumesOptions {
  store: Pick<Store, "apps" | "machines" | "volumes">;
  files: VolumeFiles;
  /** Pauses a running machine, its disks flushed, for the time of the work. */
  whilePaused: HoldStill;
  /** Throws when the app may not take this many bytes more of the disk. By default, it may. */
  requireDisk?(app: string, bytes: number): void;
  /** The snapshots that are taken by themselves. Default: none. */
  schedule?: {
    /** How often each volume is due, in milliseconds. */
    intervalMs: number;
    /** Whether new volumes have such snapshots. `auto`: where they take only the space of what changes. */
    byDefault: "auto" | "on" | "off";
    log: ConstructorParameters<typeof SnapshotScheduler>[0]["log"];
  };
  /** The wall clock. By default, the host's. */
  clock?(): Date;
  /** The host of a cluster that has a newer copy of the volume. By default, there is none. */
  newerOn?(volume: VolumeRecord): string | undefined;
  /** Is told of each volume that was destroyed. */
  onDestroyed?(volume: VolumeRecord): void;
  /** Throws `failed_precondition` if the app may not have that many more GB of volumes. By default, it may. */
  requireRoom?(app: string, gb: number): void;
  /** Receives what the owner should know, e.g. about files that belong to no volume. */
  onTrouble(message: string): void;
}

/** What a new volume contains. By default, nothing. */
interface Origin {
  snapshot?: VolumeSnapshotRecord | undefined;
  source?: VolumeRecord | undefined;
  /** Path of a disk that is moved to its place. */
  disk?: string;
}

/**
 * All volumes. An intent is stored before its files are touched, and its completion afterwards, so that `recover` can
 * remove what a killed platform left half done.
 */
export class Volumes implements VolumeService, VolumeCopies {
  readonly #options: VolumesOptions;
  readonly #snapshots: VolumeSnapshots;
  readonly #queues = new SerialQueues();
  readonly #attachments: Attachments;
  /** Takes the snapshots that are due. */
  readonly scheduler: SnapshotScheduler;
  readonly travel: Travel;

  constructor(options: VolumesOptions) {
    this.#options = options;
    const { store, files, whilePaused, requireDisk } = options;
    this.#attachments = new Attachments(store, {
      now: () => this.#now(),
      newerOn: (volume) => options.newerOn?.(volume),
    });
    const machineOf = (id: string) => this.#attachments.machineOf(id);
    const queues = this.#queues;
    this.travel = new Travel({
      store: store.volumes,
      files,
      queues,
      giveWay: (id) => this.scheduler.giveWay(id),
    });
    const isHeld = (id: string) => this.travel.isHeld(id);
    this.#snapshots = new VolumeSnapshots({
      ...{ store: store.volumes, files, whilePaused, queues, machineOf, requireDisk, isHeld },
    });
    this.scheduler = new SnapshotScheduler({
      store: store.volumes,
      snapshots: this.#snapshots,
      isHeld,
      intervalMs: options.schedule?.intervalMs ?? DAY_MS,
      clock: () => this.#now(),
      log: options.schedule?.log ?? { info() {}, warn: (_fields, message) => options.onTrouble(message) },
    });
  }

  /**
   * Removes what a platform that died left half made or half deleted. Call once, before anything else. Volumes that arrive
   * from another host of the cluster may be in place before they are stored.
   */
  async recover(arriving: ReadonlySet<string> = new Set()): Promise<void> {
    const { store, files, onTrouble } = this.#options;
    for (const volume of store.volumes.list()) {
      if (volume.state !== "created") await this.#remove(volume);
      else await this.#snapshots.recover(volume);
    }
    const known = new Set([...store.volumes.list().map(({ id }) => id), ...arriving]);
    const strays = (await files.folders()).filter((name) => name.startsWith("vol_") && !known.has(name));
    if (strays.length > 0)
      onTrouble(
        `${files.root} contains ${strays.join(", ")}, which the database does not know. Nothing was changed; delete what you no longer need.`,
      );
  }

  /** Deletes snapshots that are past their retention every `everyMs` milliseconds. Returns a function that stops this. */
  startExpiry(everyMs: number): () => void {
    const expire = async () => {
      for (const volume of this.#options.store.volumes.list()) await this.#snapshots.expire(volume);
    };
    const timer = setInterval(() => void expire().catch((error) => this.#options.onTrouble(String(error))), everyMs);
    timer.unref();
    return () => clearInterval(timer);
  }

  list(app: string): VolumeView[] {
    this.#requireApp(app);
    return this.#options.store.volumes.list(app).map((volume) => this.#view(volume));
  }

  get(app: string, id: string): VolumeView {
    return this.#view(this.#find(app, id));
  }

  async usedBytes({ id, state }: VolumeRecord): Promise<number> {
    const { files } = this.#options;
    return state === "created" ? files.sizeBytes(files.disk(id)) : 0;
  }

  async create(
    app: string,
    { name, sizeGb, snapshotRetention, scheduledSnapshots, snapshotId, sourceId }: CreateVolume,
  ): Promise<VolumeView> {
    this.#requireApp(app);
    checkName(name);
    if (snapshotId !== undefined && sourceId !== undefined)
      throw new HibernautError(
        "invalid_argument",
        "A volume is made from a snapshot or from a volume. Name one of them.",
      );
    const snapshot = snapshotId === undefined ? undefined : this.#snapshots.find(app, snapshotId);
    const source = sourceId === undefined ? undefined : this.source(app, sourceId);
    const least = (snapshot ?? source)?.sizeGb ?? DEFAULT_SIZE_GB;
    if (sizeGb !== undefined && sizeGb < least)
      throw new HibernautError(
        "invalid_argument",
        `What is in ${snapshotId ?? sourceId} needs a volume of at least ${least} GB. Set size_gb to ${least} or more.`,
        {
          field: "size_gb",
          minimum: least,
        },
      );
    const retention = snapshotRetention ?? DEFAULT_RETENTION_DAYS;
    const volume: VolumeRecord = {
      ...newVolume(app, name, sizeGb ?? least),
      snapshotRetention: retention,
      ...this.#scheduleOf(scheduledSnapshots),
    };
    return this.#view(await this.#make(volume, { snapshot, source }));
  }

  newId(): string {
    return newId("vol");
  }

  async adopt(
    app: string,
    { id, name, sizeGb, snapshotRetention, schedule }: AdoptedVolume,
    disk: string,
  ): Promise<VolumeView> {
    this.#requireApp(app);
    const volume: VolumeRecord = {
      ...newVolume(app, name, sizeGb),
      ...{ id, snapshotRetention },
      ...this.#scheduleOf((schedule ?? null) !== null),
    };
    return this.#view(await this.#make(volume, { disk }));
  }

  source(app: string, id: string): VolumeRecord {
    const { store } = this.#options;
    const [volume, own] = [store.volumes.get(id), store.apps.get(app)];
    const owner = volume && store.apps.get(volume.app);
    if (volume !== undefined && own !== undefined && owner !== undefined)
      if (owner.name === app || isPreviewOf(own, owner)) return this.#whole(owner.name, id);
    const message = `There is no volume ${id.slice(0, 40)} that a volume of ${app} can be a copy of. It has to be one of the same app, or of the app that ${app} is a preview of.`;
    throw new HibernautError("not_found", message, { app_name: app, volume_id: id.slice(0, 40) });
  }

  update(
    app: string,
    word: string,
    { snapshotRetention, scheduledSnapshots }: Pick<CreateVolume, "snapshotRetention" | "scheduledSnapshots">,
  ): VolumeView {
    const volume = this.#whole(app, word);
    const already = (volume.schedule ?? null) !== null;
    const updated: VolumeRecord = {
      ...volume,
      ...(snapshotRetention !== undefined && { snapshotRetention }),
      // One that is on already keeps its times.
      ...(scheduledSnapshots !== already && this.#scheduleOf(scheduledSnapshots)),
    };
    this.#options.store.volumes.update(updated);
    return this.#view(updated);
  }

  extend(app: string, word: string, sizeGb: number): { volume: VolumeView; needsRestart: boolean } {
    const volume = this.#whole(app, word);
    const { id } = volume;
    this.#options.requireRoom?.(app, sizeGb - volume.sizeGb);
    if (sizeGb < volume.sizeGb)
      throw new HibernautError(
        "invalid_argument",
        `Volume ${id} has ${volume.sizeGb} GB and cannot be made smaller. Create a smaller volume and copy the data.`,
        { field: "size_gb", minimum: volume.sizeGb },
      );
    this.#options.requireDisk?.(app, (sizeGb - volume.sizeGb) * GB);
    // The file follows at the next cold start: a guest that is running or suspended knows the old size.
    const extended = { ...volume, sizeGb };
    this.#options.store.volumes.update(extended);
    const machine = this.#attachments.machineOf(id);
    const needsRestart = machine !== undefined && sizeGb > volume.sizeGb && hasGuest(machine);
    return { volume: this.#view(extended), needsRestart };
  }

  async destroy(app: string, word: string): Promise<void> {
    const volume = this.#whole(app, word);
    const { id } = volume;
    const reason = this.#attachments.takenBy(id);
    if (reason !== undefined)
      throw new HibernautError(
        "failed_precondition",
        `Volume ${id} cannot be destroyed: ${reason}. Destroy that machine first, or update it so that it does not mount the volume.`,
        { volume_id: id, machine_id: this.#attachments.machineOf(id)?.id ?? null },
      );
    // Stored first: no machine gets the volume from here on, and after a crash the next platform finishes the job.
    this.#options.store.volumes.update({ ...volume, state: "destroying" });
    await this.#queues.run(id, () => this.#remove(volume));
  }

  async destroyAll(app: string): Promise<void> {
    for (const { id, state } of this.list(app)) {
      if (state === "created") await this.destroy(app, id);
      else await this.#queues.run(id, async () => {}); // another call is already on it
    }
  }

  async listSnapshots(app: string, id: string): Promise<VolumeSnapshotRecord[]> {
    return this.#snapshots.list(this.#find(app, id));
  }

  async snapshot(app: string, id: string): Promise<VolumeSnapshotRecord> {
    return this.#snapshots.create(this.#whole(app, id));
  }

  async destroySnapshot(app: string, id: string, snapshotId: string): Promise<void> {
    const volume = this.#find(app, id);
    this.travel.requireHere(volume.id);
    await this.#snapshots.destroy(volume, snapshotId);
  }

  async hold(app: string, mounts: readonly Mount[] | undefined, machineId?: string): Promise<HeldMounts> {
    if (mounts === undefined) return { mounts: undefined, [Symbol.dispose]: () => {} };
    const { mounts: chosen, missing, release } = this.#attachments.reserve(app, mounts, machineId);
    try {
      for (const volume of missing) await this.#make(volume);
      return { mounts: chosen, [Symbol.dispose]: release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async disks(
    mounts: readonly Mount[] = [],
    { grow, signal }: { grow: boolean; signal: AbortSignal },
  ): Promise<VolumeDisk[]> {
    const { store, files } = this.#options;
    const disks: VolumeDisk[] = [];
    for (const id of mounts.map(wantedOf)) {
      this.scheduler.giveWay(id);
      this.#snapshots.giveWay(id);
      await this.#queues.idle(id, signal);
      const volume = store.volumes.get(id);
      if (volume?.state !== "created")
        throw new HibernautError(
          "failed_precondition",
          `Volume ${id} no longer exists. Update the machine to mount another one.`,
        );
      if (grow) await files.grow(id, volume.sizeGb);
      disks.push({ id, file: files.disk(id) });
    }
    return disks;
  }

  whileUnused(id: string, work: (disk: string) => Promise<void>): Promise<boolean> {
    const { store, files } = this.#options;
    return this.#queues.run(id, async () => {
      if (store.volumes.get(id)?.state !== "created" || this.#attachments.machineOf(id) !== undefined) return false;
      await work(files.disk(id));
      return true;
    });
  }

  snapshotFile({ id, volumeId }: VolumeSnapshotRecord): string {
    return this.#options.files.snapshot(volumeId, id);
  }

  /** Stores the intent, makes the files, then stores that they are whole. */
  async #make(wanted: VolumeRecord, { snapshot, source, disk }: Origin = {}): Promise<VolumeRecord> {
    const { store, files, requireDisk } = this.#options;
    requireDisk?.(wanted.app, wanted.sizeGb * GB);
    const volume: VolumeRecord =
      wanted.schedule === undefined ? { ...wanted, ...this.#scheduleOf(await this.#byDefault()) } : wanted;
    this.#options.requireRoom?.(volume.app, volume.sizeGb);
    if (!store.volumes.insert(volume)) throw noApp(volume.app);
    // In its queue, so that the deletion of the app waits for it, and then destroys it.
    return this.#queues.run(volume.id, async () => {
      try {
        if (disk !== undefined) await files.adopt(disk, volume.id);
        else if (snapshot !== undefined) await this.#snapshots.restore(snapshot, volume.id);
        else if (source !== undefined) await this.#snapshots.copy(source, volume.id);
        else await files.make(volume.id, volume.sizeGb);
        const made: VolumeRecord = { ...volume, state: "created" };
        store.volumes.update(made);
        return made;
      } catch (error) {
        await this.#remove(volume);
        throw error;
      }
    });
  }

  /** Whether new volumes have scheduled snapshots. */
  async #byDefault(): Promise<boolean> {
    const { schedule, files } = this.#options;
    return schedule?.byDefault === "auto" ? files.canClone() : schedule?.byDefault === "on";
  }

  /** The part of a record that says so; nothing when it is not known yet. */
  #scheduleOf(on: boolean | undefined): Pick<VolumeRecord, "schedule"> {
    return on === undefined ? {} : { schedule: on ? newSchedule(this.#now()) : null };
  }

  #now(): Date {
    return this.#options.clock?.() ?? new Date();
  }

  async #remove(volume: VolumeRecord): Promise<void> {
    const { store, files, onDestroyed } = this.#options;
    await this.#snapshots.forget(volume);
    await files.remove(volume.id);
    store.volumes.remove(volume.id);
    onDestroyed?.(volume);
  }

  /** Finds the volume that a word stands for: its id, its name if no other volume has it, or the beginning of its id. */
  #find(app: string, word: string): VolumeRecord {
    this.#requireApp(app);
    const volume = findNamed(word, this.#options.store.volumes.list(app), { noun: "volume", prefix: "vol_" });
    if (volume !== undefined) return volume;
    const message = `App ${app} has no volume ${word.slice(0, 40)}. See \`hibernaut volumes list --app ${app}\`.`;
    throw new HibernautError("not_found", message, { app_name: app, volume_id: word });
  }

  #whole(app: string, word: string): VolumeRecord {
    const volume = this.#find(app, word);
    this.travel.requireHere(volume.id);
    if (volume.state === "created") return volume;
    const { id, state } = volume;
    throw new HibernautError("failed_precondition", `Volume ${id} is still ${state}. Try again in a moment.`, {
      volume_id: id,
      state,
    });
  }

  #requireApp(app: string): void {
    if (this.#options.store.apps.get(app) === undefined) throw noApp(app);
  }

  #view(volume: VolumeRecord): VolumeView {
    const machineId = this.#attachments.machineOf(volume.id)?.id ?? null;
    const newerOn = machineId === null ? this.#options.newerOn?.(volume) : undefined;
    return { ...volume, machineId, ...(newerOn !== undefined && { newerOn }) };
  }
}

/** Whether the machine is running or has a snapshot: its memory then holds what it knows about its disks. */
function hasGuest({ state, snapshot }: MachineRecord): boolean {
  return snapshot !== null || !["created", "stopped", "failed"].includes(state);
}

function noApp(app: string): HibernautError {
  const message = `There is no app ${app.slice(0, 80)}. See \`hibernaut apps list\`.`;
  return new HibernautError("not_found", message, { app_name: app });
}
