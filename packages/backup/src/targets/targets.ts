/** Backups to targets: the implementation of {@link BackupTargetService}. */
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { abortable } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import type { Vault } from "@hibernaut/secrets";
import type { OutboxStore } from "@hibernaut/store";
import type { Backups } from "../backups.ts";
import type { BackupTargetService, NewTarget, Phase, SetView, TargetChanges, TargetView } from "./contract.ts";
import { isOverdue, nextDue } from "./due.ts";
import { parseKeep } from "./keep.ts";
import { SetMaker } from "./make-set.ts";
import type { Verified } from "./manifest.ts";
import { addTarget } from "./new-target.ts";
import { Outcomes } from "./outcomes.ts";
import { Repositories } from "./repositories.ts";
import { requireSchedule } from "./rules.ts";
import { setsOf } from "./sets.ts";
import { TARGETS_FILE, TargetFile, type TargetRecord } from "./target-file.ts";
import { checkSets } from "./upkeep.ts";
import { nextDrill, pastOf, viewOf } from "./views.ts";
import { busy, type Log, newWork, type TargetWork, type Work } from "./work.ts";

interface TargetsOptions {
  dataDir: string;
  backups: Pick<Backups, "each" | "get">;
  vault: Vault;
  outbox: Pick<OutboxStore, "add">;
  /** The version of Hibernaut. */
  version: string;
  settings: { restic: string; backupVerify: Verified["read"] };
  now?: () => Date;
  log: Log;
}

/** The targets of one platform. */
export class BackupTargets implements BackupTargetService {
  readonly #options: TargetsOptions;
  readonly #file: TargetFile;
  readonly #repositories: Repositories;
  readonly #outcomes: Outcomes;
  readonly #maker: SetMaker;
  readonly #closing = new AbortController();
  /** What is at a target is listed once for all who ask meanwhile: it takes processes, and costs where requests do. */
  readonly #listings = new Map<string, Promise<SetView[]>>();
  #work: Work | undefined;

  constructor(options: TargetsOptions) {
    const { dataDir, backups, version, vault, outbox, settings, log } = options;
    const now = () => this.#now();
    this.#options = options;
    const file = new TargetFile(join(dataDir, TARGETS_FILE));
    const repositories = new Repositories({ dataDir, restic: settings.restic, vault });
    const verify = settings.backupVerify;
    this.#file = file;
    this.#repositories = repositories;
    this.#outcomes = new Outcomes({ file, folder: repositories.folder, outbox, now, log });
    this.#maker = new SetMaker({ dataDir, backups, version, verify, file, repositories, now, log });
  }

  /** Takes note of what a platform that was killed did not finish. Call it once, before anything else. */
  async recover(): Promise<void> {
    await this.#repositories.clear();
    await this.#outcomes.recover();
  }

  async list(): Promise<TargetView[]> {
    return (await this.#file.read()).targets.map((target) => this.#view(target));
  }

  async get(name: string): Promise<TargetView> {
    return this.#view(await this.#record(name));
  }

  async add(wanted: NewTarget, signal: AbortSignal): Promise<{ target: TargetView; key: string | null }> {
    const { dataDir, log } = this.#options;
    const place = { dataDir, file: this.#file, repositories: this.#repositories, now: this.#now() };
    const { record, key } = await addTarget(wanted, place, signal);
    log.info({ target: record.name, url: record.url }, "a target for backups was added");
    return { target: this.#view(record), key };
  }

  async update(name: string, { schedule, keep, drillSchedule }: TargetChanges): Promise<TargetView> {
    await this.#record(name);
    if (schedule !== undefined) requireSchedule(schedule);
    if (drillSchedule !== undefined) requireSchedule(drillSchedule, "drill_schedule");
    if (typeof keep === "string") parseKeep(keep);
    await this.#file.update(name, () => ({
      ...(schedule !== undefined && { schedule, scheduledAt: this.#now().toISOString(), toldOverdue: false }),
      ...(keep !== undefined && { keep }),
      ...(drillSchedule !== undefined && { drillSchedule, drillScheduledAt: this.#now().toISOString() }),
    }));
    return this.get(name);
  }

  async remove(name: string): Promise<void> {
    await this.#record(name);
    if (this.#work?.target === name) throw busy(this.#work);
    await this.#file.change((targets) => targets.filter((target) => target.name !== name));
    this.#outcomes.forget(name);
    this.#options.log.info({ target: name }, "a target for backups was removed; what is stored there stays");
  }

  async sets(name: string, signal: AbortSignal): Promise<SetView[]> {
    const target = await this.#record(name);
    const known = this.#listings.get(name);
    if (known !== undefined) return abortable(known, signal);
    const listing = this.#list(target, this.#closing.signal).finally(() => this.#listings.delete(name));
    this.#listings.set(name, listing);
    return abortable(listing, signal);
  }

  async #list(target: TargetRecord, signal: AbortSignal): Promise<SetView[]> {
    const { platform } = await this.#file.read();
    return this.#repositories.open(target, signal, async (repository) => {
      const { snapshots, manifests } = await repository.all(signal);
      return setsOf(snapshots, manifests, platform);
    });
  }

  async start(name: string): Promise<TargetView> {
    const target = await this.#record(name);
    this.#requireFree();
    background(
      this.#begin(target, "copying", (work) => this.#backUp(target, work)),
      "backing up to a target",
    );
    return this.get(name);
  }

  async cancel(name: string): Promise<boolean> {
    await this.#record(name);
    const work = this.#work;
    // By then, the backup counts.
    if (work?.target !== name || work.phase === "deleting" || work.committed === true) return false;
    work.abort.abort(new HibernautError("aborted", "It was canceled. What came of it so far does not count."));
    await work.ended;
    return true;
  }

  async startCheck(name: string, readData: boolean): Promise<TargetView> {
    const target = await this.#record(name);
    this.#requireFree("checking");
    background(
      this.#begin(target, "checking", (work) => this.#check(target, readData, work)),
      "checking a target for backups",
    );
    return this.get(name);
  }

  /** Begins something else at a target, and returns the target. There is one such work at a time. */
  async use(name: string, phase: Phase, act: (work: TargetWork) => Promise<void>): Promise<TargetView> {
    const target = await this.#record(name);
    const { platform } = await this.#file.read();
    this.#requireFree(phase);
    const work = this.#begin(target, phase, async (one) => {
      const { signal } = one.abort;
      // One that ends the platform is not due again at once.
      if (phase === "drilling") await this.#file.update(name, () => ({ drillScheduledAt: one.startedAt }));
      await act({
        ...{ platform, signal, startedAt: one.startedAt, drills: target.drills ?? [] },
        withRepository: (use) => this.#repositories.open(target, signal, use),
        committed: () => {
          one.committed = true;
        },
        now: () => this.#now().toISOString(),
        ended: (result) => this.#outcomes.used(name, result),
      });
    });
    background(work, `${phase} from a target`);
    return this.get(name);
  }

  /** Throws while an app is restored or tried: a backup would have what is to be removed. */
  refuseCopies(): void {
    if (this.#work?.phase === "restoring" || this.#work?.phase === "drilling") throw busy(this.#work);
  }

  /** Whether a backup or a check runs. */
  get isBusy(): boolean {
    return this.#work !== undefined || this.#options.backups.get().state === "running";
  }

  /** Looks for backups that are overdue, tells of each once, and returns the names of targets whose backup is due. */
  async look(): Promise<string[]> {
    const { targets } = await this.#file.read();
    const now = this.#now();
    for (const target of targets)
      if (!target.toldOverdue && isOverdue(pastOf(target), now)) await this.#outcomes.overdue(target);
    return targets.filter((target) => (nextDue(pastOf(target), now) ?? now) < now).map(({ name }) => name);
  }

  /** Returns the names of targets whose drill is due. */
  async dueDrills(): Promise<string[]> {
    const { targets } = await this.#file.read();
    const now = this.#now();
    return targets.filter((target) => (nextDrill(target, now) ?? now) < now).map(({ name }) => name);
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    const reason = new HibernautError("unavailable", "The platform is shutting down. Back up again later.");
    this.#closing.abort(reason);
    this.#work?.abort.abort(reason);
    await this.#work?.ended;
  }

  async #begin({ name }: TargetRecord, phase: Phase, act: (work: Work) => Promise<void>): Promise<void> {
    this.#requireFree(phase);
    const work = newWork(name, phase, this.#now());
    this.#work = work;
    const done = act(work).finally(() => {
      this.#work = undefined;
    });
    work.ended = done.catch(() => {}); // those who began it are told
    await done;
  }

  /** Throws unless a backup or a check can begin. A check does not mind a backup to a file. */
  #requireFree(phase: Phase = "copying"): void {
    this.#closing.signal.throwIfAborted();
    if (this.#work !== undefined) throw busy(this.#work);
    const { state, startedAt } = this.#options.backups.get();
    if (phase === "checking" || state !== "running") return;
    const message = `A backup is being made since ${startedAt}. Wait until it is done, then back up again.`;
    throw new HibernautError("failed_precondition", message);
  }

  /** Makes a backup, and stores how it ended. */
  async #backUp(target: TargetRecord, work: Work): Promise<void> {
    const { name } = target;
    const { startedAt, abort } = work;
    try {
      await this.#outcomes.begins(name, startedAt);
      await this.#outcomes.succeeded(name, startedAt, await this.#maker.make(target, work));
    } catch (error) {
      const canceled = abort.signal.aborted && !this.#closing.signal.aborted;
      await this.#outcomes.failed(name, startedAt, {
        error: abort.signal.aborted ? abort.signal.reason : error,
        canceled,
      });
    }
  }

  /** Checks a target, and stores what was found. A check that was ended has found nothing. */
  async #check(target: TargetRecord, readData: boolean, { abort: { signal } }: Work): Promise<void> {
    let failure: { error: unknown } | undefined;
    try {
      await this.#repositories.open(target, signal, (repository) => checkSets(repository, readData, signal));
    } catch (error) {
      if (signal.aborted) return;
      failure = { error };
    }
    await this.#outcomes.checked(target.name, readData, failure);
  }

  async #record(name: string): Promise<TargetRecord> {
    const found = (await this.#file.read()).targets.find((target) => target.name === name);
    if (found !== undefined) return found;
    const message = `There is no target ${name.slice(0, 40)} for backups. See \`hibernaut backup targets list\`.`;
    throw new HibernautError("not_found", message, { target: name.slice(0, 40) });
  }

  #view(target: TargetRecord): TargetView {
    const work = this.#work?.target === target.name ? this.#work : undefined;
    return viewOf(target, { work, failures: this.#outcomes.failures(target.name), now: this.#now() });
  }

  #now(): Date {
    return this.#options.now?.() ?? new Date();
  }
}
