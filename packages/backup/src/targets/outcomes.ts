/** Stores and tells how backups and checks ended: in the file of the targets, the stream of events, and the log. */
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import type { OutboxStore } from "@hibernaut/store";
import type { Drill } from "../apps/results.ts";
import { BEGAN_FILE, noteBegan, noteEnded, readBegan } from "./began.ts";
import type { MadeSet } from "./make-set.ts";
import { sizeOf } from "./manifest.ts";
import type { LastCheck, LastRun, TargetFile, TargetRecord } from "./target-file.ts";
import type { Log, UseResult } from "./work.ts";

interface Options {
  file: TargetFile;
  /** The directory of the note that says which backup runs. */
  folder: string;
  outbox: Pick<OutboxStore, "add">;
  now: () => Date;
  log: Log;
}

/** How the work at the targets of one platform ended. */
export class Outcomes {
  readonly #options: Options;
  readonly #failures = new Map<string, number>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Takes note of a backup that a platform that was killed did not finish. */
  async recover(): Promise<void> {
    const began = await readBegan(this.#began);
    if (began === undefined) return;
    const error = new HibernautError("aborted", "The platform ended while the backup was made.");
    try {
      const { targets } = await this.#options.file.read();
      const { last } = targets.find(({ name }) => name === began.target) ?? {};
      // How it ended was stored, and only the note was still there.
      if (last?.startedAt === began.at) return await noteEnded(this.#began);
      await this.failed(began.target, began.at, { error, canceled: false });
    } catch (fault) {
      this.#options.log.warn({ reason: messageOf(fault) }, "the targets for backups cannot be read");
    }
  }

  /** Notes that a backup begins, for the case that the platform is killed. */
  async begins(target: string, at: string): Promise<void> {
    await noteBegan(this.#began, { target, at });
  }

  /** Stores and tells that a backup counts. */
  async succeeded(name: string, startedAt: string, { manifest, changed, failedCommands }: MadeSet): Promise<void> {
    const { file, log } = this.#options;
    const { set, added } = manifest;
    const bytes = sizeOf(manifest);
    const endedAt = this.#now();
    const told = { changed, failedCommands };
    const last: LastRun = { startedAt, endedAt, state: "complete", set, bytes, added, ...told, error: null };
    const lastSuccess = { at: manifest.at, set };
    await file.update(name, () => ({ last, lastSuccess, toldOverdue: false }));
    await noteEnded(this.#began);
    if (changed.length > 0) {
      this.#tell("backup.content_changed", { target: name, set, pieces: changed });
      log.warn({ target: name, set, pieces: changed }, "what never changes has changed since a backup");
    }
    for (const { id, app, reason } of failedCommands)
      this.#tell("backup.command_failed", { target: name, set, app, machine_id: id, reason });
    this.#tell("backup.complete", { target: name, set, bytes, added });
    log.info({ target: name, set, bytes, added }, "a backup was made and verified");
  }

  /** Stores and tells that a backup failed or was canceled. It is told also when it cannot be stored. */
  async failed(name: string, startedAt: string, how: { error: unknown; canceled: boolean }): Promise<void> {
    const { file, log } = this.#options;
    const state = how.canceled ? "canceled" : "failed";
    const error = saidOf(how.error);
    const last: LastRun = { startedAt, endedAt: this.#now(), state, set: null, bytes: 0, added: 0, error };
    const reason = error.message;
    log.warn({ target: name, reason }, `a backup to a target ${how.canceled ? "was canceled" : "failed"}`);
    if (!how.canceled) this.#failures.set(name, this.failures(name) + 1);
    try {
      await file.update(name, () => ({ last }));
      await noteEnded(this.#began);
    } finally {
      this.#tell(`backup.${state}`, { target: name, error });
    }
  }

  /** Stores and tells what a check found. `failure` is absent when everything is there. */
  async checked(name: string, readData: boolean, failure?: { error: unknown }): Promise<void> {
    const { file, log } = this.#options;
    let error: LastCheck["error"] = null;
    if (failure !== undefined) {
      error = saidOf(failure.error);
      this.#tell("backup.check_failed", { target: name, error });
      log.warn({ target: name, reason: error.message }, "the check of a target failed");
    }
    await file.update(name, () => ({ lastCheck: { at: this.#now(), readData, error } }));
  }

  /** Stores and tells that no good backup came for longer than the schedule promises. */
  async overdue({ name, lastSuccess }: TargetRecord): Promise<void> {
    await this.#options.file.update(name, () => ({ toldOverdue: true }));
    this.#tell("backup.overdue", { target: name, last_success_at: lastSuccess?.at ?? null });
    this.#options.log.warn({ target: name }, "the backup to a target is overdue");
  }

  /** Stores and tells what came of a restore or a drill. */
  async used(name: string, result: UseResult): Promise<void> {
    const { file, log } = this.#options;
    const isDrill = "drill" in result;
    const { app, set, error } = isDrill ? result.drill : result.restore;
    await file.update(name, ({ drills = [] }) =>
      isDrill
        ? { lastDrill: result.drill, drills: drillsAfter(drills, result.drill, result.apps) }
        : { lastRestore: result.restore },
    );
    const type = isDrill
      ? `backup.drill_${result.drill.outcome}`
      : `backup.${error === null ? "restored" : "restore_failed"}`;
    this.#tell(type, { target: name, app: app || null, set, ...(!isDrill && { as: result.restore.as }), error });
    if (error === null) return;
    log.warn({ target: name, app, reason: error.message }, isDrill ? "a drill failed" : "a restore failed");
  }

  /** How many backups to a target failed since the platform started. */
  failures(name: string): number {
    return this.#failures.get(name) ?? 0;
  }

  /** Forgets a target. */
  forget(name: string): void {
    this.#failures.delete(name);
  }

  get #began(): string {
    return join(this.#options.folder, BEGAN_FILE);
  }

  #tell(type: string, data: Record<string, unknown>): void {
    this.#options.outbox.add({ type, at: this.#now(), app: null, machine: null, data });
  }

  #now(): string {
    return this.#options.now().toISOString();
  }
}

/** Returns an error as it is stored and told. */
export function saidOf(error: unknown): { code: string; message: string } {
  return { code: error instanceof HibernautError ? error.code : "internal", message: messageOf(error) };
}

/** Each app has its latest one. */
const MOST_DRILLS = 1000;

/** Returns the latest drill of each app of a set. One that found no app is not among them. */
function drillsAfter(drills: readonly Drill[], latest: Drill, apps: readonly string[]): Drill[] {
  // Where nothing is known of the set, nobody is forgotten.
  const others = drills.filter(({ app }) => app !== latest.app && (apps.length === 0 || apps.includes(app)));
  return [...(latest.set === null ? [] : [latest]), ...others].slice(0, MOST_DRILLS);
}
