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
import type { Choice } from "../targets/choose.ts";
import type { TargetView } from "../targets/contract.ts";
import { appsOf, type Manifest } from "../targets/manifest.ts";
import { saidOf } from "../targets/outcomes.ts";
import type { Repository } from "../targets/repository.ts";
import type { BackupTargets } from "../targets/targets.ts";
import type { Log, TargetWork } from "../targets/work.ts";
import { chooseForApp, nextToDrill } from "./choose.ts";
import { tryMachines } from "./drill.ts";
import { type FetchedApp, fetchApp } from "./fetch.ts";
import { bringImages } from "./images.ts";
import type { Drill, LastRestore } from "./results.ts";
import { configFor, lasting, type RestoreUse, useOf, type WantedApp } from "./rules.ts";
import { takeOver } from "./take-over.ts";
import { forgetUnfinished, noteUnfinished, readUnfinished, type Unfinished } from "./unfinished.ts";
import { drillFailure, outcomeOf } from "./verdict.ts";

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
  log: Pick<Log, "warn">;
}

/** Where it comes from. */
type From = Pick<TargetWork, "platform" | "signal" | "committed"> & { repository: Repository };

/** What is restored from where to where. */
interface Task {
  app: string;
  as: string;
  use: RestoreUse;
  manifest: Manifest;
  /** When the app was created whose place is taken. */
  createdAt: string | undefined;
}

/** What came of it. */
interface Brought {
  restored: RestoredApp;
  /** The machines whose place was taken, by id. */
  replaced: string[];
  fetched: FetchedApp;
}

/** Restores single apps, and tries whether that would work. Calls reject with a HibernautError. */
export class AppRestores {
  readonly #options: AppRestoresOptions;
  readonly #folder: string;
  #recovered: Promise<void> = Promise.resolve();

  constructor(options: AppRestoresOptions) {
    this.#options = options;
    this.#folder = join(options.dataDir, FOLDER);
  }

  /** Removes what a platform that was killed left of apps that it was making. Call it once machines are recovered. */
  recover(): Promise<void> {
    const recovering = rm(this.#folder, { recursive: true, force: true }).then(() => this.#removeAll());
    this.#recovered = recovering.catch(() => {}); // the caller is told
    return recovering;
  }

  /**
   * Begins to restore an app. Rejects with `already_exists` when it would get in the way of one that is there, with
   * `invalid_argument` for a name that no app can have, and as the beginning of a backup does.
   */
  async restore(target: string, wanted: WantedApp & Choice): Promise<TargetView> {
    const { apps } = this.#options.resources;
    const useNow = () => useOf(wanted, (app) => apps.has(app));
    const { app, as = app } = wanted;
    // Now, while the client waits for the answer; and once more when it is made.
    const createdAt = useNow() === "in_place" ? apps.get(app).createdAt : undefined;
    return this.#options.targets.use(target, "restoring", async (work) => {
      let restore: LastRestore = {
        ...{ startedAt: work.startedAt, endedAt: "", app, as, set: null, setAt: null },
        ...{ machines: [], volumes: [], replaced: [], error: null },
      };
      try {
        await work.withRepository(async (repository) => {
          const from = { ...work, repository };
          const manifest = await this.#choose(from, wanted);
          restore = { ...restore, set: manifest.set, setAt: manifest.at };
          const task = { app, as, use: useNow(), manifest, createdAt };
          const { restored, replaced } = await this.#bring(task, from);
          restore = { ...restore, ...restored, replaced };
        });
        await forgetUnfinished(this.#options.dataDir, as);
      } catch (error) {
        await this.#removeAll();
        restore = { ...restore, error: saidOf(work.signal.aborted ? work.signal.reason : error) };
      }
      await work.ended({ restore: { ...restore, endedAt: work.now() } });
    });
  }

  /** Begins a drill of an app: by default, of the one whose last drill is the longest ago. */
  drill(target: string, { app: wanted, ...choice }: { app?: string | undefined } & Choice): Promise<TargetView> {
    return this.#options.targets.use(target, "drilling", async (work) => {
      let apps: readonly string[] = [];
      let drill: Drill = {
        ...{ startedAt: work.startedAt, endedAt: "", app: wanted ?? "", set: null, setAt: null },
        ...{ machines: [], counts: [], outcome: "failed", error: null },
      };
      try {
        const { app, as, restored, fetched } = await work.withRepository(async (repository) => {
          const from = { ...work, repository };
          const manifest = await this.#choose(from, choice);
          apps = appsOf(manifest);
          const next = wanted ?? nextToDrill(manifest, new Map(work.drills.map((one) => [one.app, one.endedAt])));
          drill = { ...drill, app: next, set: manifest.set, setAt: manifest.at };
          const task = { app: next, as: drillName(next), use: "drill", manifest, createdAt: undefined } as const;
          return { ...task, ...(await this.#bring(task, from)) };
        });
        const before = work.drills.find((one) => one.app === app)?.counts ?? [];
        const tried = { app: as, machines: restored.machines, records: fetched.machines, before };
        const limit = within(work.signal, TRY_MS, "the drill");
        const found = await tryMachines(tried, this.#options.resources, limit);
        const failure = drillFailure(found.machines, found.counts);
        drill =
          failure === undefined
            ? { ...drill, ...found, outcome: outcomeOf(found.machines) }
            : { ...drill, ...found, error: { code: "failed_precondition", message: failure } };
      } catch (error) {
        drill = { ...drill, error: saidOf(work.signal.aborted ? work.signal.reason : error) };
      }
      await this.#removeAll();
      // What was canceled has found nothing, and what the end of the platform interrupts, neither.
      if (!work.signal.aborted) await work.ended({ drill: { ...drill, endedAt: work.now() }, apps });
    });
  }

  async #choose({ repository, platform, signal }: From, choice: Choice): Promise<Manifest> {
    return chooseForApp({ ...(await repository.all(signal)), platform }, choice);
  }

  /** Fetches an app and makes it. When that fails, what was made of an app of its own is left to {@link #removeAll}. */
  async #bring(task: Task, { repository, signal, committed }: From): Promise<Brought> {
    const { app, as, use, manifest } = task;
    const { images, resources, openStore, openSecrets } = this.#options;
    await this.#recovered;
    await this.#removeAll();
    await rm(this.#folder, { recursive: true, force: true });
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    try {
      const from = { repository, manifest, folder: this.#folder };
      const fetched = await fetchApp({ ...from, app, openStore, openSecrets }, signal);
      await using brought = await bringImages(fetched.machines, { ...from, images }, signal);
      if (use !== "in_place") await this.#create(as, use, fetched);
      const createdAt = task.createdAt ?? resources.apps.get(as).createdAt;
      requireSame(resources.apps, as, createdAt);
      const before = use === "in_place" ? this.#present(as) : [];
      const since = new Date().toISOString();
      let replaced: string[] = [];
      const backup = {
        ...{ app: as, folder: this.#folder, volumes: fetched.volumes },
        machines: fetched.machines.map((record) => ({ ...record, config: configFor(use, record.config) })),
        unfit: this.#unfit(as, fetched.secrets, brought.others),
        isOtherImage: ({ imageDigest }: MachineRecord) => brought.others.has(imageDigest),
        begin: async (volumes: readonly string[]) => {
          if (use !== "in_place") return;
          await noteUnfinished(this.#options.dataDir, { app: as, createdAt, parts: { since, volumes } });
        },
        finish: (restored: RestoredApp) => {
          signal.throwIfAborted();
          requireSame(resources.apps, as, createdAt);
          if (use === "drill") return;
          replaced = takeOver(as, { before, restored }, resources.machines);
          committed();
        },
      };
      const restored = await resources.backupRestores.restore(backup, signal);
      return { restored, replaced, fetched };
    } finally {
      await rm(this.#folder, { recursive: true, force: true });
    }
  }

  /** The machines that the app has, as far as they could be in a backup. */
  #present(app: string): string[] {
    return lasting(this.#options.resources.machines.list(app).map(({ record }) => record)).map(({ id }) => id);
  }

  #unfit(app: string, secrets: Record<string, string>, others: ReadonlySet<string>) {
    const changed = haveChanged(this.#options.secrets.environment(app), secrets);
    return ({ imageDigest }: MachineRecord): string | null => {
      if (others.has(imageDigest)) return "its image was built again since, with another result";
      return changed ? "the app's secrets have changed since, and the old ones are in its memory" : null;
    };
  }

  async #create(app: string, use: RestoreUse, { record, secrets }: FetchedApp): Promise<void> {
    const { home, resources, dataDir } = this.#options;
    // The name of a drill is random. Another one may become someone else's before this one has it.
    if (use === "drill") await noteUnfinished(dataDir, { app, createdAt: null });
    await home.create(app, use === "again" ? record.network : undefined);
    await noteUnfinished(dataDir, { app, createdAt: resources.apps.get(app).createdAt });
    if (Object.keys(secrets).length > 0) await home.setSecrets(app, secrets);
  }

  /** Removes what was made here and is not to stay. What fails is tried again before the next restore, and by the next platform. */
  async #removeAll(): Promise<void> {
    const { dataDir, log } = this.#options;
    for (const unfinished of await readUnfinished(dataDir))
      try {
        await this.#remove(unfinished);
        await forgetUnfinished(dataDir, unfinished.app);
      } catch (error) {
        log.warn({ app: unfinished.app, reason: messageOf(error) }, "what was made of a backup could not be removed");
      }
  }

  async #remove({ app, createdAt, parts }: Unfinished): Promise<void> {
    const { home, resources } = this.#options;
    const there = resources.apps.has(app) ? resources.apps.get(app) : undefined;
    // Another one of that name is someone else's.
    if (there === undefined || (createdAt !== null && there.createdAt !== createdAt)) return;
    if (parts === undefined) await home.destroy(app);
    else await resources.backupRestores.undoSince(app, parts.since, parts.volumes);
  }
}

/** Throws `aborted` when the app was deleted since, and perhaps created again: that one is another app. */
function requireSame(apps: Pick<Resources["apps"], "has" | "get">, app: string, createdAt: string): void {
  if (apps.has(app) && apps.get(app).createdAt === createdAt) return;
  throw new HibernautError("aborted", `App ${app} was deleted while it was restored.`, { app_name: app });
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
