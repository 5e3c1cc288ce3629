/** Volumes on their way between hosts of a cluster: what goes along with a volume, and where it is put. */
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { volumesOf } from "@hibernaut/domain/mounts";
import { nextEpoch, type VolumeRecord } from "@hibernaut/domain/volume";
import { ifAbsent, isThere, isThereSync } from "@hibernaut/lib/absence";
import { abortable } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { lackOfRoom } from "@hibernaut/lib/disk-files";
import { flush } from "@hibernaut/lib/durable";
import type { VolumeStore } from "@hibernaut/store";
import type { VolumePapers, VolumeTravel } from "./contract.ts";
import type { VolumeFiles } from "./files.ts";
import type { SerialQueues } from "./serial-queues.ts";

interface TravelOptions {
  store: VolumeStore;
  files: VolumeFiles;
  /** Work on one volume runs one at a time, by id. */
  queues: SerialQueues;
  /** Ends a copy that nobody requested. */
  giveWay(volumeId: string): void;
}

export class Travel implements VolumeTravel {
  readonly #options: TravelOptions;
  readonly #held = new Set<string>();

  constructor(options: TravelOptions) {
    this.#options = options;
  }

  get root(): string {
    return this.#options.files.root;
  }

  /** Whether the volume is held: its snapshots are left alone then. */
  isHeld(id: string): boolean {
    return this.#held.has(id);
  }

  /** Throws `aborted` while the volume is held. */
  requireHere(id: string): void {
    if (!this.#held.has(id)) return;
    const message = `Volume ${id} is being moved to another host with its machine. Wait until that is done and try again.`;
    throw new HibernautError("aborted", message, { volume_id: id });
  }

  async papers(machine: MachineRecord): Promise<VolumePapers[]> {
    const { store, files } = this.#options;
    const ids = volumesOf(machine);
    const volumes = ids.flatMap((id) => store.get(id) ?? []);
    return Promise.all(
      volumes.map(async (volume) => {
        const snapshots = store.listSnapshots(volume.id).filter(({ state }) => state === "created");
        const own = await files.sizeBytes(files.disk(volume.id)).catch(ifAbsent(0));
        const bytes = snapshots.reduce((sum, { sizeBytes }) => sum + sizeBytes, own);
        return { volume, snapshots: snapshots.reverse(), bytes };
      }),
    );
  }

  paths(papers: readonly VolumePapers[]): string[] {
    const { files } = this.#options;
    const all = papers.flatMap(({ volume, snapshots }) => [
      files.disk(volume.id),
      ...snapshots.map(({ id }) => files.snapshot(volume.id, id)),
    ]);
    return all.map((path) => relative(this.root, path));
  }

  async hold(ids: readonly string[], signal: AbortSignal): Promise<Disposable> {
    const { queues, giveWay } = this.#options;
    const released = Promise.withResolvers<void>();
    const release = () => {
      for (const id of ids) this.#held.delete(id);
      released.resolve();
    };
    for (const id of ids) {
      this.#held.add(id);
      giveWay(id);
    }
    try {
      for (const id of ids) {
        const entered = Promise.withResolvers<void>();
        background(
          queues.run(id, () => {
            entered.resolve();
            return released.promise;
          }),
          "holding a volume for its move",
        );
        await abortable(entered.promise, signal);
      }
    } catch (error) {
      release();
      throw error;
    }
    return { [Symbol.dispose]: release };
  }

  has(id: string): boolean {
    return this.#options.store.get(id) !== undefined;
  }

  isOlder({ id, epoch }: Required<Pick<VolumeRecord, "id" | "epoch">>): boolean {
    return (this.#options.store.get(id)?.epoch ?? 0) < epoch;
  }

  async unfit(papers: readonly VolumePapers[]): Promise<string | undefined> {
    if (papers.length === 0) return undefined;
    const { files } = this.#options;
    const ids = papers.map(({ volume }) => volume.id);
    const known = ids.find((id) => this.has(id));
    if (known !== undefined)
      return `volume_exists: it has a copy of volume ${known}, which it gives up by itself unless \`hibernaut volumes list\` calls it outdated: delete that one there`;
    const stray = ids.find((id) => isThereSync(files.folder(id)));
    if (stray !== undefined)
      return `volume_exists: its directory ${files.folder(stray)} has files that its database does not know`;
    await mkdir(this.root, { recursive: true, mode: 0o700 });
    const [here, around] = await Promise.all([stat(this.root), stat(dirname(this.root))]);
    // What has arrived is renamed to its place, which must not fail once the volume is this host's.
    if (here.dev !== around.dev)
      return `volumes_elsewhere: its directory ${this.root} is on another file system than its data directory`;
    const lack = await lackOfRoom(
      this.root,
      papers.reduce((sum, { bytes }) => sum + bytes, 0),
    );
    return lack && `disk_full: its disk has ${lack.free} MB free, and the volumes need ${lack.needed} MB`;
  }

  async requireWhole(folder: string, papers: readonly VolumePapers[]): Promise<void> {
    for (const path of this.paths(papers)) await stat(join(folder, path));
  }

  async place(folder: string, papers: readonly VolumePapers[]): Promise<void> {
    const { files } = this.#options;
    await mkdir(this.root, { recursive: true, mode: 0o700 });
    for (const { volume } of papers) {
      const from = join(folder, volume.id);
      const to = files.folder(volume.id);
      // The platform ended between this and storing the volume.
      if (!(await isThere(from)) && (await isThere(to))) continue;
      await rm(to, { recursive: true, force: true });
      await rename(from, to);
    }
    await flush(this.root);
  }

  adopt(papers: readonly VolumePapers[]): void {
    const { store } = this.#options;
    for (const { volume, snapshots } of papers) {
      // Where the latest scheduled snapshot left the disk is something that only the former host could see.
      const latest = volume.schedule?.latest ?? null;
      const schedule = latest === null ? volume.schedule : { ...volume.schedule, latest: { ...latest, disk: null } };
      const epoch = nextEpoch(volume);
      const here = { ...volume, epoch, ...(schedule !== undefined && { schedule }) } as typeof volume;
      if (!store.insert(here, { movedIn: true }))
        throw new HibernautError("not_found", `There is no app ${volume.app} for volume ${volume.id}.`, {
          app_name: volume.app,
        });
      for (const snapshot of snapshots) store.insertSnapshot(snapshot);
    }
  }

  folder(id: string): string {
    return this.#options.files.folder(id);
  }

  async removeFiles(id: string): Promise<void> {
    await this.#options.files.remove(id);
  }

  forget(id: string): void {
    const { store } = this.#options;
    for (const snapshot of store.listSnapshots(id)) store.removeSnapshot(snapshot.id);
    store.remove(id, { movedAway: true });
  }
}
