/** Machines and volumes of an app that come from a backup, under new ids, next to those that are there. */
import { join } from "node:path";
import { type MachineConfig, machineEgress } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { wantedOf } from "@hibernaut/domain/mounts";
import { pinned } from "@hibernaut/domain/pinned";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import { FORKS_PROTOCOL } from "@hibernaut/guest";
import { messageOf } from "@hibernaut/lib/text";
import { bear, requireBirths } from "../births/bear.ts";
import type { TemplateBirths } from "../births/from-template.ts";
import { requireWhole, type Seed } from "../births/seed.ts";
import type { MachineController } from "../controller.ts";
import { createMachine } from "../create-machine.ts";
import { protocolOf } from "../eligibility.ts";
import { newMachineName } from "../identity.ts";
import { sameApp } from "../require-app.ts";

/** What a backup has of an app. */
export interface BackedUpApp {
  /** The app that gets it, which exists. */
  app: string;
  /** A directory that is laid out like that of a platform, on its file system. Disks of volumes are moved out of it. */
  folder: string;
  machines: readonly MachineRecord[];
  volumes: readonly VolumeRecord[];
  /** Why a machine cannot have its memory here, as the end of a sentence; null where nothing is known against it. */
  unfit(machine: MachineRecord): string | null;
}

/** A machine that came back. It is asleep or has not been started, and cordoned. */
export interface RestoredMachine {
  id: string;
  name: string;
  /** The machine that it was in the backup. */
  from: string;
  /** Why it starts from scratch, as the end of a sentence; null if it has its memory. */
  withoutMemory: string | null;
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
   * Makes the machines and volumes of a backup: all of them, or none. Rejects as the creation of machines and volumes does, and
   * with `failed_precondition` when the backup lacks a volume that a machine has.
   */
  async restore(backup: BackedUpApp, signal: AbortSignal): Promise<RestoredApp> {
    const { volumes } = this.#births.deps;
    const made = new Map<string, string>();
    const born: MachineController[] = [];
    try {
      for (const volume of backup.volumes) {
        signal.throwIfAborted();
        const disk = join(backup.folder, "volumes", volume.id, "data.ext4");
        made.set(volume.id, (await volumes.adopt(backup.app, volume, disk)).id);
      }
      const machines: RestoredMachine[] = [];
      for (const record of backup.machines) {
        const adapted = { ...record, config: withVolumes(record, made) };
        const { controller, withoutMemory } = await this.#machine(backup, adapted, signal);
        born.push(controller);
        const { id, name } = controller.record;
        machines.push({ id, name, from: record.id, withoutMemory });
      }
      return { machines, volumes: [...made.values()] };
    } catch (error) {
      await this.#undo(backup.app, born, [...made.values()]);
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
    const withoutMemory = await this.#whyCold(backup, seed, signal);
    const make = withoutMemory === null ? this.#asleep(seed, name, signal) : this.#cold(seed.record, name, signal);
    return { controller: await make, withoutMemory };
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
    // Nobody else gets its volumes until it is stored.
    using held = await deps.volumes.hold(seed.record.app, seed.record.config.mounts);
    const same = sameApp(deps.store.apps, seed.record.app);
    const requireStill = () => {
      drain.refuseWork();
      same();
    };
    const context = { deps, controllers, copying, counts, requireStill };
    const births = { count: 1, name, cordoned: true };
    await requireBirths(context, seed, births, { starts: false, drafts: 0 });
    const [controller] = await bear(context, seed, births, signal);
    if (controller === undefined) throw new Error("nothing was restored");
    counts.add("backup");
    return controller;
  }

  /** Its volumes are what it was; what it wrote elsewhere is gone, as with any cold start after a stop. */
  #cold({ app, config, imageDigest }: MachineRecord, name: string, signal: AbortSignal): Promise<MachineController> {
    const { deps, controllers, drain } = this.#births;
    const context = { deps, controllers, refuseWork: () => drain.refuseWork(), signal };
    const fixed = { ...config, image: pinned(config.image, imageDigest) };
    return createMachine(context, app, { name, config: fixed, skipLaunch: true, cordoned: true });
  }

  #freeName(app: string, wanted: string): string {
    const taken = this.#births.deps.store.machines.list(app).some(({ name }) => name === wanted);
    return taken ? newMachineName() : wanted;
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

/** How long it may take to destroy a machine that never ran, in milliseconds. */
const DESTROY_TIMEOUT_MS = 60_000;

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
