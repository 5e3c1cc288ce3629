/** Restores single apps from targets into the platform that runs, and tries whether that would work. */
import { randomBytes } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { AppNetwork } from "@hibernaut/domain/app-network";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { ImageStore } from "@hibernaut/images";
import { within } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { Resources, RestoredApp } from "@hibernaut/machines";
import type { Secrets } from "@hibernaut/secrets";
import type { Store } from "@hibernaut/store";
import type { TargetView } from "../targets/contract.ts";
import type { Manifest } from "../targets/manifest.ts";
import type { Repository } from "../targets/repository.ts";
import type { BackupTargets, TargetWork } from "../targets/targets.ts";
import { chooseSet, nextToDrill } from "./choose.ts";
import type { AppRestoreService, SetChoice } from "./contract.ts";
import { tryMachines } from "./drill.ts";
import { type FetchedApp, fetchApp } from "./fetch.ts";
import { bringImages } from "./images.ts";
import type { Drill, LastRestore } from "./results.ts";
import { configFor, type RestoreUse, useOf, type WantedApp } from "./rules.ts";
import { takeOver } from "./take-over.ts";
import { forgetUnfinished, noteUnfinished, readUnfinished } from "./unfinished.ts";
import { drillFailure } from "./verdict.ts";

/** The directory in the data directory into which pieces are extracted. Backups do not contain it. */
const FOLDER = "tmp-restore";

/** How long the machines of an app may be tried, in milliseconds: backups wait meanwhile. */
const TRY_MS = 60 * 60_000;

/** What apps have besides machines and volumes, on one host or on all of a cluster. */
export interface AppHome {
  create(app: string, network: Pick<AppNetwork, "name" | "aliases" | "wakes"> | undefined): Promise<void>;
  setSecrets(app: string, values: Record<string, string>): Promise<void>;
  /** Destroys the app with everything that it has. */
  destroy(app: string): Promise<void>;
}

interface AppRestoresOptions {
  dataDir: string;
  targets: Pick<BackupTargets, "use">;
  resources: Pick<Resources, "apps" | "machines" | "commands" | "backupRestores">;
  images: Pick<ImageStore, "adopt" | "fingerprint">;
  home: AppHome;
  secrets: Pick<Secrets, "environment">;
  openStore(file: string): Pick<Store, "apps" | "machines" | "volumes" | "secrets" | "close">;
  openSecrets(parts: { store: Store["secrets"]; keyFile: string }): Pick<Secrets, "list" | "environment">;
  log: { warn(fields: Record<string, unknown>, message: string): void };
}

/** Where it comes from. */
type From = Pick<TargetWork, "platform" | "signal"> & { repository: Repository };

/** What is restored from where to where. */
interface Task {
  app: string;
  as: string;
  use: RestoreUse;
  manifest: Manifest;
}

export class AppRestores implements AppRestoreService {
  readonly #options: AppRestoresOptions;
  readonly #folder: string;
  #recovered: Promise<void> = Promise.resolve();

  constructor(options: AppRestoresOptions) {
    this.#options = options;
    this.#folder = join(options.dataDir, FOLDER);
  }

  /** Removes what a platform that was killed left of an app that it was making. Call it once machines are recovered. */
  recover(): Promise<void> {
    const recovering = rm(this.#folder, { recursive: true, force: true }).then(() => this.#remove());
    this.#recovered = recovering.catch(() => {}); // the caller is told
    return recovering;
  }

  async restore(target: string, wanted: WantedApp & SetChoice): Promise<TargetView> {
    const { apps, machines } = this.#options.resources;
    const useNow = () => useOf(wanted, (app) => apps.has(app));
    // Now, while the client waits for the answer; and once more when it is made.
    useNow();
    return this.#options.targets.use(target, "restoring", async (work) => {
      const { app, as = app } = wanted;
      let restore: LastRestore = {
        ...{ startedAt: work.startedAt, endedAt: "", app, as, set: null, setAt: null },
        ...{ machines: [], volumes: [], replaced: [], error: null },
      };
      try {
        const { restored, before } = await work.withRepository(async (repository) => {
          const from = { ...work, repository };
          const manifest = await this.#choose(from, wanted);
          restore = { ...restore, set: manifest.set, setAt: manifest.at };
          const use = useNow();
          const ids = use === "in_place" ? machines.list(app).map(({ record }) => record.id) : [];
          return { ...(await this.#bring({ app, as, use, manifest }, from)), before: ids };
        });
        const replaced = takeOver(as, { before, restored }, machines);
        await this.#settle();
        restore = { ...restore, ...restored, replaced };
      } catch (error) {
        await this.#remove();
        restore = { ...restore, error: saidOf(work.signal.aborted ? work.signal.reason : error) };
      }
      await work.ended({ restore: { ...restore, endedAt: work.now() } });
    });
  }

  drill(target: string, { app: wanted, ...choice }: { app?: string | undefined } & SetChoice): Promise<TargetView> {
    return this.#options.targets.use(target, "drilling", async (work) => {
      let drill: Drill = {
        ...{ startedAt: work.startedAt, endedAt: "", app: wanted ?? "", set: null, setAt: null },
        ...{ machines: [], counts: [], error: null },
      };
      try {
        const { app, as, restored, fetched } = await work.withRepository(async (repository) => {
          const from = { ...work, repository };
          const manifest = await this.#choose(from, choice);
          const next = wanted ?? nextToDrill(manifest, new Map(work.drills.map((one) => [one.app, one.endedAt])));
          drill = { ...drill, app: next, set: manifest.set, setAt: manifest.at };
          const task = { app: next, as: drillName(next), use: "drill", manifest } as const;
          return { ...task, ...(await this.#bring(task, from)) };
        });
        const before = work.drills.find((one) => one.app === app)?.counts ?? [];
        const tried = { app: as, machines: restored.machines, records: fetched.machines, before };
        const limit = within(work.signal, TRY_MS, "the drill");
        const found = await tryMachines(tried, this.#options.resources, limit);
        const failure = drillFailure(found.machines, found.counts);
        const error = failure === undefined ? null : { code: "failed_precondition", message: failure };
        drill = { ...drill, ...found, error };
      } catch (error) {
        drill = { ...drill, error: saidOf(work.signal.aborted ? work.signal.reason : error) };
      }
      await this.#remove();
      // What the end of the platform interrupts is due again.
      if (!work.isClosing()) await work.ended({ drill: { ...drill, endedAt: work.now() } });
    });
  }

  async #choose({ repository, platform, signal }: From, choice: SetChoice): Promise<Manifest> {
    const snapshots = await repository.snapshots(signal);
    return chooseSet({ snapshots, manifests: await repository.manifests(snapshots, signal), platform }, choice);
  }

  /** Fetches an app and makes it. When that fails, what was made of an app of its own is left to {@link #remove}. */
  async #bring(
    { app, as, use, manifest }: Task,
    { repository, signal }: From,
  ): Promise<{ restored: RestoredApp; fetched: FetchedApp }> {
    const { images, resources, openStore, openSecrets } = this.#options;
    await this.#recovered;
    await rm(this.#folder, { recursive: true, force: true });
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    try {
      const from = { repository, manifest, folder: this.#folder };
      const fetched = await fetchApp({ ...from, app, openStore, openSecrets }, signal);
      await using brought = await bringImages(fetched.machines, { ...from, images }, signal);
      if (use !== "in_place") await this.#create(as, use, fetched);
      const changed = haveChanged(this.#options.secrets.environment(as), fetched.secrets);
      const unfit = ({ imageDigest }: MachineRecord) => {
        if (brought.others.has(imageDigest)) return "its image was built again since, with another result";
        return changed ? "the app's secrets have changed since, and the old ones are in its memory" : null;
      };
      const machines = fetched.machines.map((record) => ({ ...record, config: configFor(use, record.config) }));
      const backup = { app: as, folder: this.#folder, machines, volumes: fetched.volumes, unfit };
      return { restored: await resources.backupRestores.restore(backup, signal), fetched };
    } finally {
      await rm(this.#folder, { recursive: true, force: true });
    }
  }

  async #create(app: string, use: RestoreUse, { record, secrets }: FetchedApp): Promise<void> {
    const { home, resources, dataDir } = this.#options;
    await home.create(app, use === "again" ? record.network : undefined);
    // From here on, what is there of this name was made here.
    await noteUnfinished(dataDir, { app, createdAt: resources.apps.get(app).createdAt });
    if (Object.keys(secrets).length > 0) await home.setSecrets(app, secrets);
  }

  /** What was made stays. */
  async #settle(): Promise<void> {
    await forgetUnfinished(this.#options.dataDir);
  }

  /** Removes an app that was made here and is not to stay. What fails is tried again by the next platform. */
  async #remove(): Promise<void> {
    const { dataDir, home, resources, log } = this.#options;
    const unfinished = await readUnfinished(dataDir);
    if (unfinished === undefined) return;
    const { app, createdAt } = unfinished;
    try {
      // Another one of that name is someone else's.
      if (resources.apps.has(app) && resources.apps.get(app).createdAt === createdAt) await home.destroy(app);
      await forgetUnfinished(dataDir);
    } catch (error) {
      log.warn({ app, reason: messageOf(error) }, "an app that was made of a backup could not be removed");
    }
  }
}

/** Room for the mark, within the 63 characters that a name may have. */
const MOST_OF_NAME = 48;

/** The name of the copy that a drill tries. */
function drillName(app: string): string {
  return `${app.slice(0, MOST_OF_NAME).replace(/-+$/, "")}-drill-${randomBytes(3).toString("hex")}`;
}

function haveChanged(now: Record<string, string>, then: Record<string, string>): boolean {
  const names = new Set([...Object.keys(now), ...Object.keys(then)]);
  return [...names].some((name) => now[name] !== then[name]);
}

function saidOf(error: unknown): { code: string; message: string } {
  return { code: error instanceof HibernautError ? error.code : "internal", message: messageOf(error) };
}
