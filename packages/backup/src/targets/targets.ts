/** Backups to targets: the implementation of {@link BackupTargetService}. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { abortable } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import { sealText, unsealText, type Vault } from "@hibernaut/secrets";
import type { OutboxStore } from "@hibernaut/store";
import type { Backups } from "../backups.ts";
import { openAccess, type ResticPlace, requireCredentials, type TargetSecrets } from "./access.ts";
import { BEGAN_FILE, noteBegan, noteEnded, readBegan } from "./began.ts";
import { boundCache, clearTemporary, RESTIC_FOLDER } from "./cache.ts";
import type { BackupTargetService, NewTarget, Phase, SetView, TargetChanges, TargetView } from "./contract.ts";
import { isOverdue, nextDue } from "./due.ts";
import { requireApart, requireElsewhere } from "./elsewhere.ts";
import type { Snapshot } from "./garbage.ts";
import { parseKeep } from "./keep.ts";
import { locationText, parseLocation } from "./location.ts";
import { type Manifest, sizeOf, type Verified } from "./manifest.ts";
import { MANIFESTS_FOLDER, ManifestCache } from "./manifest-cache.ts";
import { PieceSums, SUMS_FILE } from "./piece-sums.ts";
import { Repository } from "./repository.ts";
import { givenKey, newKey, refuseTaken, requireName, requireSchedule } from "./rules.ts";
import { SetWriter } from "./set-writer.ts";
import { setsOf } from "./sets.ts";
import {
  KNOWN_HOSTS_FILE,
  type LastCheck,
  type LastRun,
  TARGETS_FILE,
  TargetFile,
  type TargetRecord,
} from "./target-file.ts";
import { checkSets, deleteOld, storedBy } from "./upkeep.ts";
import { pastOf, viewOf } from "./views.ts";

interface TargetsOptions {
  dataDir: string;
  backups: Pick<Backups, "each" | "get">;
  vault: Vault;
  outbox: Pick<OutboxStore, "add">;
  /** The version of Hibernaut. */
  version: string;
  settings: { restic: string; backupVerify: Verified["read"] };
  now?: () => Date;
  log: {
    info(fields: Record<string, unknown>, message: string): void;
    warn(fields: Record<string, unknown>, message: string): void;
  };
}

/** A set that counts. */
interface MadeSet {
  manifest: Manifest;
  /** What was in the repository once it counted. */
  snapshots: readonly Snapshot[];
  /** Names of pieces that never change and have changed. */
  changed: string[];
}

/** What happens at a target. There is one at a time. */
interface Work {
  target: string;
  phase: Phase;
  startedAt: string;
  /** Random hex digits. */
  mark: string;
  abort: AbortController;
  ended: Promise<unknown>;
}

export class BackupTargets implements BackupTargetService {
  readonly #options: TargetsOptions;
  readonly #file: TargetFile;
  readonly #place: ResticPlace;
  readonly #closing = new AbortController();
  readonly #manifests: ManifestCache;
  readonly #failures = new Map<string, number>();
  /** What is at a target is listed once for all who ask meanwhile: it takes processes, and costs where requests do. */
  readonly #listings = new Map<string, Promise<SetView[]>>();
  #work: Work | undefined;

  constructor(options: TargetsOptions) {
    this.#options = options;
    const { dataDir, settings } = options;
    this.#file = new TargetFile(join(dataDir, TARGETS_FILE));
    this.#place = {
      program: settings.restic,
      folder: join(dataDir, RESTIC_FOLDER),
      knownHosts: join(dataDir, KNOWN_HOSTS_FILE),
    };
    this.#manifests = new ManifestCache(join(this.#place.folder, MANIFESTS_FOLDER));
  }

  /** Takes note of what a platform that was killed did not finish. Call it once, before anything else. */
  async recover(): Promise<void> {
    const { folder } = this.#place;
    const began = await readBegan(this.#began);
    await clearTemporary(folder);
    if (began === undefined) return;
    const error = new HibernautError("aborted", "The platform ended while the backup was made.");
    try {
      await this.#failed(began.target, began.at, { error, canceled: false });
    } catch (fault) {
      this.#options.log.warn({ reason: messageOf(fault) }, "the targets for backups cannot be read");
    }
  }

  async list(): Promise<TargetView[]> {
    return (await this.#file.read()).targets.map((target) => this.#view(target));
  }

  async get(name: string): Promise<TargetView> {
    return this.#view(await this.#record(name));
  }

  async add(wanted: NewTarget, signal: AbortSignal): Promise<{ target: TargetView; key: string | null }> {
    const { name, schedule = null, keep = null, key, accessKey, secretKey, sshKey } = wanted;
    const location = parseLocation(wanted.url);
    requireName(name);
    requireSchedule(schedule);
    if (keep !== null) parseKeep(keep);
    const credentials = {
      ...(accessKey !== undefined && { accessKey }),
      ...(secretKey !== undefined && { secretKey }),
      ...(sshKey !== undefined && { sshKey }),
    };
    requireCredentials(location, credentials);
    if (location.kind === "directory") await requireElsewhere(location.path, this.#options.dataDir);
    const url = locationText(location);
    const refuse = (targets: readonly TargetRecord[]) => refuseTaken(targets, { name, url });
    refuse((await this.#file.read()).targets);
    const secrets: TargetSecrets = { key: key === undefined ? newKey() : givenKey(key), ...credentials };
    await this.#reach({ url, secrets }, signal, async (repository) => {
      if (!(await this.#isThere(repository, { url, isNew: key === undefined }, signal)))
        await repository.create(signal);
    });
    const now = this.#now().toISOString();
    const record: TargetRecord = {
      ...{ name, url, addedAt: now, schedule, scheduledAt: now, keep },
      sealed: sealText(this.#options.vault, sealedAs(name), JSON.stringify(secrets)),
      ...{ last: null, lastSuccess: null, lastCheck: null, toldOverdue: false, pruneError: null },
    };
    await this.#file.change((targets) => {
      refuse(targets);
      return [...targets, record];
    });
    this.#options.log.info({ target: name, url }, "a target for backups was added");
    return { target: this.#view(record), key: key === undefined ? secrets.key : null };
  }

  async update(name: string, { schedule, keep }: TargetChanges): Promise<TargetView> {
    await this.#record(name);
    if (schedule !== undefined) requireSchedule(schedule);
    if (typeof keep === "string") parseKeep(keep);
    await this.#file.update(name, () => ({
      ...(schedule !== undefined && { schedule, scheduledAt: this.#now().toISOString(), toldOverdue: false }),
      ...(keep !== undefined && { keep }),
    }));
    return this.get(name);
  }

  async remove(name: string): Promise<void> {
    await this.#record(name);
    if (this.#work?.target === name) throw busy(this.#work);
    await this.#file.change((targets) => targets.filter((target) => target.name !== name));
    this.#failures.delete(name);
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
    return this.#open(target, signal, async (repository) => {
      const snapshots = await repository.snapshots(signal);
      return setsOf(snapshots, await repository.manifests(snapshots, signal), platform);
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

  /** Backs up to a target, and resolves when that has ended, however it did. */
  async run(name: string): Promise<void> {
    const target = await this.#record(name);
    this.#requireFree();
    await this.#begin(target, "copying", (work) => this.#backUp(target, work));
  }

  async cancel(name: string): Promise<boolean> {
    await this.#record(name);
    const work = this.#work;
    // By then, the backup counts.
    if (work?.target !== name || work.phase === "deleting") return false;
    work.abort.abort(new HibernautError("aborted", "It was canceled. What was stored so far does not count."));
    await work.ended;
    return true;
  }

  async startCheck(name: string, readData: boolean): Promise<TargetView> {
    const target = await this.#record(name);
    this.#requireFree("checking");
    background(this.#begin(target, "checking", this.#checking(target, readData)), "checking a target for backups");
    return this.get(name);
  }

  /** Checks a target, and resolves when that has ended, however it did. */
  async check(name: string, readData: boolean): Promise<void> {
    const target = await this.#record(name);
    await this.#begin(target, "checking", this.#checking(target, readData));
  }

  /** Whether a backup or a check runs. */
  get isBusy(): boolean {
    return this.#work !== undefined || this.#options.backups.get().state === "running";
  }

  /** Looks for backups that are overdue, tells of each once, and returns the names of targets whose backup is due. */
  async look(): Promise<string[]> {
    const { targets } = await this.#file.read();
    const now = this.#now();
    for (const target of targets) {
      if (target.toldOverdue || !isOverdue(pastOf(target), now)) continue;
      await this.#file.update(target.name, () => ({ toldOverdue: true }));
      this.#tell("backup.overdue", { target: target.name, last_success_at: target.lastSuccess?.at ?? null });
      this.#options.log.warn({ target: target.name }, "the backup to a target is overdue");
    }
    return targets.filter((target) => (nextDue(pastOf(target), now) ?? now) < now).map(({ name }) => name);
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
    const abort = new AbortController();
    const work: Work = {
      ...{ target: name, phase, startedAt: this.#now().toISOString(), mark: randomBytes(3).toString("hex") },
      ...{ abort, ended: Promise.resolve() },
    };
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
      await noteBegan(this.#began, { target: name, at: startedAt });
      // A link or a mount may lead elsewhere than when the target was added.
      const location = parseLocation(target.url);
      if (location.kind === "directory") await requireApart(location.path, this.#options.dataDir);
      const made = await this.#open(target, abort.signal, async (repository) => {
        const set = await this.#writeSet(repository, work).catch(async (error: unknown) => {
          // Where no room is left, what the rule gives up makes some, and the next try may succeed.
          if (isFull(error)) await this.#deleteOld(name, repository, abort.signal, { failed: setName(work) });
          throw error;
        });
        work.phase = "deleting";
        const { manifest, snapshots } = set;
        await this.#deleteOld(name, repository, abort.signal, { made: manifest.set, listed: snapshots });
        return set;
      });
      await this.#boundCaches();
      await this.#succeeded(name, startedAt, made);
    } catch (error) {
      const canceled = abort.signal.aborted && !this.#closing.signal.aborted;
      await this.#failed(name, startedAt, { error: abort.signal.aborted ? abort.signal.reason : error, canceled });
    }
  }

  async #boundCaches(): Promise<void> {
    try {
      await boundCache(this.#place.folder);
      await this.#manifests.bound();
    } catch (error) {
      this.#options.log.warn({ reason: messageOf(error) }, "what is kept at hand of backups cannot be deleted");
    }
  }

  async #writeSet(repository: Repository, work: Work): Promise<MadeSet> {
    const { backups, version, settings } = this.#options;
    const { signal } = work.abort;
    const { platform } = await this.#file.read();
    const at = work.startedAt;
    const identity = { set: setName(work), platform, version, host: hostname(), at, verify: settings.backupVerify };
    await repository.removeStaleLocks(signal);
    const sums = await PieceSums.open({ file: join(this.#place.folder, SUMS_FILE), now: () => this.#now() });
    const writer = new SetWriter({
      repository,
      ...identity,
      stored: await storedBy(platform, repository, signal),
      sums,
    });
    let made: Omit<MadeSet, "changed"> | undefined;
    await backups.each({
      take: (piece, until) => writer.take(piece, until),
      finish: async (until) => {
        work.phase = "verifying";
        made = await writer.commit(backups.get().withoutMemory, until);
      },
      signal,
    });
    if (made === undefined) throw new Error("the backup ended without a manifest");
    return { ...made, changed: writer.changed };
  }

  /** The backup that was made counts, whatever becomes of older ones. */
  async #deleteOld(
    name: string,
    repository: Repository,
    signal: AbortSignal,
    sets: { made?: string; failed?: string; listed?: readonly Snapshot[] },
  ): Promise<void> {
    // The rule of now: it may have been changed while the backup was made.
    const { keep } = await this.#record(name);
    if (keep === null) return;
    let pruneError: string | null = null;
    try {
      const { platform } = await this.#file.read();
      const ids = await deleteOld(
        repository,
        { platform, keep: parseKeep(keep), now: this.#now().getTime(), ...sets },
        signal,
      );
      if (ids.length > 0) this.#options.log.info({ target: name, snapshots: ids.length }, "old backups were deleted");
    } catch (error) {
      pruneError = messageOf(error);
      this.#options.log.warn({ target: name, reason: pruneError }, "old backups stay");
    }
    await this.#file.update(name, () => ({ pruneError }));
  }

  get #began(): string {
    return join(this.#place.folder, BEGAN_FILE);
  }

  async #succeeded(name: string, startedAt: string, { manifest, changed }: MadeSet): Promise<void> {
    const endedAt = this.#now().toISOString();
    const { set, added } = manifest;
    const bytes = sizeOf(manifest);
    const last: LastRun = { startedAt, endedAt, state: "complete", set, bytes, added, changed, error: null };
    const lastSuccess = { at: manifest.at, set };
    await this.#file.update(name, () => ({ last, lastSuccess, toldOverdue: false }));
    await noteEnded(this.#began);
    if (changed.length > 0) {
      this.#tell("backup.content_changed", { target: name, set, pieces: changed });
      this.#options.log.warn({ target: name, set, pieces: changed }, "what never changes has changed since a backup");
    }
    this.#tell("backup.complete", { target: name, set, bytes, added });
    this.#options.log.info({ target: name, set, bytes, added }, "a backup was made and verified");
  }

  async #failed(
    name: string,
    startedAt: string,
    { error, canceled }: { error: unknown; canceled: boolean },
  ): Promise<void> {
    const endedAt = this.#now().toISOString();
    const state = canceled ? "canceled" : "failed";
    const said = saidOf(error);
    const last: LastRun = { startedAt, endedAt, state, set: null, bytes: 0, added: 0, error: said };
    this.#options.log.warn(
      { target: name, reason: said.message },
      `a backup to a target ${canceled ? "was canceled" : "failed"}`,
    );
    if (!canceled) this.#failures.set(name, (this.#failures.get(name) ?? 0) + 1);
    try {
      await this.#file.update(name, () => ({ last }));
      await noteEnded(this.#began);
    } finally {
      this.#tell(`backup.${state}`, { target: name, error: said });
    }
  }

  /** Returns what checks a target, and stores what was found. A check that was ended has found nothing. */
  #checking(target: TargetRecord, readData: boolean): (work: Work) => Promise<void> {
    const { name } = target;
    return async ({ abort: { signal } }) => {
      let error: LastCheck["error"] = null;
      try {
        await this.#open(target, signal, (repository) => checkSets(repository, readData, signal));
      } catch (thrown) {
        if (signal.aborted) return;
        error = saidOf(thrown);
        this.#tell("backup.check_failed", { target: name, error });
        this.#options.log.warn({ target: name, reason: error.message }, "the check of a target failed");
      }
      await this.#file.update(name, () => ({ lastCheck: { at: this.#now().toISOString(), readData, error } }));
    };
  }

  #open<T>(target: TargetRecord, signal: AbortSignal, use: (repository: Repository) => Promise<T>): Promise<T> {
    const { name, url, sealed } = target;
    const secrets = JSON.parse(unsealText(this.#options.vault, sealedAs(name), sealed)) as TargetSecrets;
    return this.#reach({ url, secrets }, signal, use);
  }

  async #reach<T>(
    { url, secrets }: { url: string; secrets: TargetSecrets },
    signal: AbortSignal,
    use: (repository: Repository) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    await using open = await openAccess(parseLocation(url), secrets, this.#place);
    return await use(new Repository(open.access, this.#manifests));
  }

  async #isThere(
    repository: Repository,
    { url, isNew }: { url: string; isNew: boolean },
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      return await repository.isThere(signal);
    } catch (error) {
      if (!isNew || !(error instanceof HibernautError) || !/is not its key/.test(error.message)) throw error;
      const message = `${url} has a repository already, which only its key opens. Give it with --key-file, over HTTP \`key\`, or use another place.`;
      throw new HibernautError("failed_precondition", message, { field: "key" });
    }
  }

  async #record(name: string): Promise<TargetRecord> {
    const found = (await this.#file.read()).targets.find((target) => target.name === name);
    if (found !== undefined) return found;
    const message = `There is no target ${name.slice(0, 40)} for backups. See \`hibernaut backup targets list\`.`;
    throw new HibernautError("not_found", message, { target: name.slice(0, 40) });
  }

  #view(target: TargetRecord): TargetView {
    const work = this.#work?.target === target.name ? this.#work : undefined;
    return viewOf(target, { work, failures: this.#failures.get(target.name) ?? 0, now: this.#now() });
  }

  #tell(type: string, data: Record<string, unknown>): void {
    this.#options.outbox.add({ type, at: this.#now().toISOString(), app: null, machine: null, data });
  }

  #now(): Date {
    return this.#options.now?.() ?? new Date();
  }
}

function saidOf(error: unknown): { code: string; message: string } {
  return { code: error instanceof HibernautError ? error.code : "internal", message: messageOf(error) };
}

/** Sorts like the time, and two platforms that begin in the same second have two. */
function setName({ startedAt, mark }: Work): string {
  return `${startedAt.replace(/[-:]|\.\d+/g, "")}-${mark}`;
}

function isFull(error: unknown): boolean {
  return error instanceof HibernautError && error.code === "resource_exhausted";
}

function sealedAs(name: string): string {
  return `backup target ${name}`;
}

function busy({ target, phase, startedAt }: Work): HibernautError {
  const message = `The target ${target} is ${phase} since ${startedAt}, and there is one such work at a time. Wait until it has ended, or cancel it: hibernaut backup cancel ${target}`;
  return new HibernautError("failed_precondition", message, { target });
}
