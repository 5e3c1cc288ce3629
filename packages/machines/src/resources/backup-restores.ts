/** Machines and volumes of an app that come from a backup, under new ids, next to those that are there. */
import { join } from "node:path";
import { type MachineConfig, machineEgress } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { volumesOf, wantedOf } from "@hibernaut/domain/mounts";
import { pinned } from "@hibernaut/domain/pinned";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import { FORKS_PROTOCOL } from "@hibernaut/guest";
import { isThere } from "@hibernaut/lib/absence";
import { messageOf } from "@hibernaut/lib/text";
import type { HeldMounts } from "@hibernaut/volumes";
import { bear, requireBirths } from "../births/bear.ts";
import type { TemplateBirths } from "../births/from-template.ts";
import { requireWhole, type Seed } from "../births/seed.ts";
import type { MachineController } from "../controller.ts";
import { createMachine } from "../create-machine.ts";
import { protocolOf } from "../eligibility.ts";
import { newMachineName } from "../identity.ts";
import { sameApp } from "../require-app.ts";
import { DESTROY_TIMEOUT_MS } from "../waiting.ts";

/** What a backup has of an app. */
interface BackedUpApp {
  /** The app that gets it, which exists. */
  app: string;
  /** A directory that is laid out like that of a platform, on its file system. Disks of volumes are moved out of it. */
  folder: string;
  machines: readonly MachineRecord[];
  volumes: readonly VolumeRecord[];
  /** Why a machine cannot have its memory here, as the end of a sentence; null where nothing is known against it. */
  unfit(machine: MachineRecord): string | null;
  /** Whether its image is another build here: then, what it wrote does not fit, either. */
  isOtherImage(machine: MachineRecord): boolean;
  /** Is told of the ids of the volumes before they are made. */
  begin(volumes: readonly string[]): Promise<void>;
  /** Is called when everything is there, and takes it back if it throws. */
  finish(restored: RestoredApp): void;
}

/** A machine that came back. It is asleep or has not been started, and cordoned. */
export interface RestoredMachine {
  id: string;
  name: string;
  /** The machine that it was in the backup. */
  from: string;
  /** Whether it was cordoned then. */
  cordoned: boolean;
  /** Why it starts from scratch, as the end of a sentence; null if it has its memory. */
  withoutMemory: string | null;
}

/** How a machine comes back that starts from scratch. */
interface ColdStart {
  name: string;
  held: HeldMounts;
  layer: string | undefined;
  withoutMemory: string;
}

export interface RestoredApp {
  machines: RestoredMachine[];
  /** Ids of the new volumes. */
  volumes: string[];
}

export class BackupRestores {
  readonly #births: TemplateBirths;

  constructor(births: TemplateBirths) {
    this.#births = births;
  }

  /**
   * Makes the machines and volumes of a backup: all of them, or none. Rejects as the creation of machines and volumes does, with
   * `failed_precondition` when the backup lacks a volume that a machine has, and with what `finish` throws.
   */
  async restore(backup: BackedUpApp, signal: AbortSignal): Promise<RestoredApp> {
    const { deps } = this.#births;
    const ids = new Map(backup.volumes.map(({ id }) => [id, deps.volumes.newId()]));
    const made: string[] = [];
    const born: MachineController[] = [];
    try {
      await backup.begin([...ids.values()]);
      const adopt = async (volume: VolumeRecord) => {
        signal.throwIfAborted();
        const disk = join(backup.folder, "volumes", volume.id, "data.ext4");
        const { id } = await deps.volumes.adopt(backup.app, { ...volume, id: ids.get(volume.id) ?? "" }, disk);
        made.push(id);
      };
      const machines: RestoredMachine[] = [];
      const attached = new Set(backup.machines.flatMap(volumesOf));
      for (const record of backup.machines) {
        const adapted = { ...record, config: withVolumes(record, ids) };
        const own = volumesOf(record);
        for (const volume of backup.volumes) if (own.includes(volume.id)) await adopt(volume);
        const { controller, withoutMemory } = await this.#machine(backup, adapted, signal);
        born.push(controller);
        const { id, name } = controller.record;
        machines.push({ id, name, from: record.id, cordoned: record.cordoned === true, withoutMemory });
      }
      for (const volume of backup.volumes) if (!attached.has(volume.id)) await adopt(volume);
      const restored = { machines, volumes: made };
      backup.finish(restored);
      return restored;
    } catch (error) {
      await this.#undo(backup.app, born, made);
      throw error;
    }
  }

  async #machine(
    backup: BackedUpApp,
    record: MachineRecord,
    signal: AbortSignal,
  ): Promise<{ controller: MachineController; withoutMemory: string | null }> {
    const { app } = backup;
    await this.#births.deps.network.requireRules(machineEgress(record.config));
    const name = this.#freeName(app, record.name);
    const seed: Seed = {
      folder: join(backup.folder, "machines", record.id),
      record: { ...record, app, snapshot: this.#snapshotOf(app, record) },
      origin: { kind: "backup", machine: record.id },
    };
    // Nobody else gets its volumes until it is stored.
    using held = await this.#births.deps.volumes.hold(app, record.config.mounts);
    const withoutMemory = await this.#whyCold(backup, seed, signal);
    if (withoutMemory === null) return { controller: await this.#asleep(seed, name, signal), withoutMemory };
    const layer = await this.#layerOf(backup, seed);
    return { controller: await this.#cold(seed, { name, held, layer, withoutMemory }, signal), withoutMemory };
  }

  /** The memory has the app's secrets in it. The caller has seen to it that they are the same. */
  #snapshotOf(app: string, { snapshot }: MachineRecord): MachineRecord["snapshot"] {
    if (snapshot === null) return null;
    const { secrets: _, ...rest } = snapshot;
    const version = this.#births.deps.secrets.version(app);
    return version === "" ? rest : { ...rest, secrets: version };
  }

  async #whyCold(backup: BackedUpApp, seed: Seed, signal: AbortSignal): Promise<string | null> {
    const { deps } = this.#births;
    const { snapshot, bundleVersion, coldReason } = seed.record;
    if (snapshot === null) return `the backup has none of it (${coldReason})`;
    if (deps.bundles.get(bundleVersion) === undefined) return `this host does not have guest bundle ${bundleVersion}`;
    if (protocolOf(seed.record, deps) < FORKS_PROTOCOL) return "its guest bundle is too old";
    const unfit = backup.unfit(seed.record);
    if (unfit !== null) return unfit;
    return requireWhole(seed, deps, signal).then(
      () => null,
      (error: unknown) => {
        signal.throwIfAborted();
        return messageOf(error);
      },
    );
  }

  async #asleep(seed: Seed, name: string, signal: AbortSignal): Promise<MachineController> {
    const { deps, controllers, copying, counts, drain } = this.#births;
    const same = sameApp(deps.store.apps, seed.record.app);
    const requireStill = () => {
      drain.refuseWork();
      same();
      controllers.deletions.requireLasting(seed.record.app);
    };
    const context = { deps, controllers, copying, counts, requireStill };
    const births = { count: 1, name, cordoned: true };
    await requireBirths(context, seed, births, { starts: false, drafts: 0 });
    const [controller] = await bear(context, seed, births, signal);
    if (controller === undefined) throw new Error("nothing was restored");
    counts.add("backup");
    return controller;
  }

  /** The writable layer that a start from scratch would have kept. Undefined for none, and for one of another image. */
  async #layerOf(backup: BackedUpApp, { folder, record }: Seed): Promise<string | undefined> {
    const layer = join(folder, "layer.ext4");
    const isKept = record.snapshot !== null || !record.resetLayer;
    return isKept && !backup.isOtherImage(record) && (await isThere(layer)) ? layer : undefined;
  }

  #cold(
    { record: { app, config, imageDigest, snapshot, coldReason }, origin }: Seed,
    { name, held, layer, withoutMemory }: ColdStart,
    signal: AbortSignal,
  ): Promise<MachineController> {
    const { deps, controllers, drain } = this.#births;
    const reason = snapshot === null ? coldReason : `backup_without_memory: ${withoutMemory}`;
    const restored = { origin, held, layer, coldReason: reason };
    const context = { deps, controllers, refuseWork: () => drain.refuseWork(), signal, restored };
    const fixed = { ...config, image: pinned(config.image, imageDigest) };
    return createMachine(context, app, { name, config: fixed, skipLaunch: true, cordoned: true });
  }

  #freeName(app: string, wanted: string): string {
    const taken = this.#births.deps.store.machines.list(app).some(({ name }) => name === wanted);
    return taken ? newMachineName() : wanted;
  }

  /** Takes back what a platform that was killed made of a backup since a moment, if it did not finish. */
  async undoSince(app: string, since: string, volumes: readonly string[]): Promise<void> {
    const { controllers, deps } = this.#births;
    const born = controllers
      .of(app)
      .filter(({ record: { origin, createdAt } }) => origin?.kind === "backup" && createdAt >= since);
    // The first that gets requests ends the restore.
    if (born.some(({ record }) => record.cordoned !== true)) return;
    const there = new Set(deps.volumes.list(app).map(({ id }) => id));
    await this.#undo(
      app,
      born,
      volumes.filter((id) => there.has(id)),
    );
  }

  /** Takes back what was made of a backup that could not be restored whole. */
  async #undo(app: string, born: readonly MachineController[], made: readonly string[]): Promise<void> {
    const { deps, controllers } = this.#births;
    for (const controller of born) controller.command({ type: "destroy", force: true });
    for (const controller of born)
      await controllers.wait(controller, ["destroyed"], { timeoutMs: DESTROY_TIMEOUT_MS }).catch((error: unknown) => {
        deps.log.warn({ machine: controller.record.id, reason: messageOf(error) }, "a restored machine is still there");
      });
    for (const id of made)
      await deps.volumes.destroy(app, id).catch((error: unknown) => {
        deps.log.warn({ volume: id, reason: messageOf(error) }, "a restored volume is still there");
      });
  }
}

function withVolumes({ id, config }: MachineRecord, made: ReadonlyMap<string, string>): MachineConfig {
  const { mounts, ...rest } = config;
  if (mounts === undefined) return config;
  const mapped = mounts.map((mount) => {
    const volume = made.get(wantedOf(mount));
    if (volume !== undefined) return { ...mount, volume };
    const message = `The backup lacks volume ${wantedOf(mount)} of machine ${id}. Use another backup.`;
    throw new HibernautError("failed_precondition", message, { machine_id: id });
  });
  return { ...rest, mounts: mapped };
}
