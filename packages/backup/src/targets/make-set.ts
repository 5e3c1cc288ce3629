/** Makes one set at a target: writes and verifies it, and deletes what the rule of the target gives up. */
import { hostname } from "node:os";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import type { Backups } from "../backups.ts";
import type { FailedCommand } from "../commands.ts";
import { requireApart } from "./elsewhere.ts";
import type { Snapshot } from "./garbage.ts";
import { parseKeep } from "./keep.ts";
import { parseLocation } from "./location.ts";
import type { Manifest, Verified } from "./manifest.ts";
import { PieceSums, SUMS_FILE } from "./piece-sums.ts";
import type { Repositories } from "./repositories.ts";
import type { Repository } from "./repository.ts";
import { SetWriter } from "./set-writer.ts";
import type { TargetFile, TargetRecord } from "./target-file.ts";
import { deleteOld, storedBy } from "./upkeep.ts";
import { type Log, setName, type Work } from "./work.ts";

/** A set that counts. */
export interface MadeSet {
  manifest: Manifest;
  /** What was in the repository once it counted. */
  snapshots: readonly Snapshot[];
  /** Names of pieces that never change and have changed. */
  changed: string[];
  /** What apps wanted to do before they were backed up, and could not. */
  failedCommands: FailedCommand[];
}

interface Options {
  dataDir: string;
  backups: Pick<Backups, "each" | "get">;
  /** The version of Hibernaut. */
  version: string;
  verify: Verified["read"];
  file: TargetFile;
  repositories: Repositories;
  now: () => Date;
  log: Log;
}

/** Makes the sets of one platform. */
export class SetMaker {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Makes a set, and says in `work` how far it is. Rejects, with nothing that counts, when anything about it is in doubt. */
  async make(target: TargetRecord, work: Work): Promise<MadeSet> {
    const { dataDir, repositories, log } = this.#options;
    const { signal } = work.abort;
    // A link or a mount may lead elsewhere than when the target was added.
    const location = parseLocation(target.url);
    if (location.kind === "directory") await requireApart(location.path, dataDir);
    const made = await repositories.open(target, signal, async (repository) => {
      const set = await this.#write(repository, work).catch(async (error: unknown) => {
        // Where no room is left, what the rule gives up makes some, and the next try may succeed.
        if (isFull(error)) await this.#deleteOld(target.name, repository, signal, { failed: setName(work) });
        throw error;
      });
      work.phase = "deleting";
      const { manifest, snapshots } = set;
      await this.#deleteOld(target.name, repository, signal, { made: manifest.set, listed: snapshots });
      return set;
    });
    await repositories.bound().catch((error: unknown) => {
      log.warn({ reason: messageOf(error) }, "what is kept at hand of backups cannot be deleted");
    });
    return made;
  }

  async #write(repository: Repository, work: Work): Promise<MadeSet> {
    const { backups, version, verify, file, repositories, now } = this.#options;
    const { signal } = work.abort;
    const { platform } = await file.read();
    const identity = { set: setName(work), platform, version, host: hostname(), at: work.startedAt, verify };
    await repository.removeStaleLocks(signal);
    const sums = await PieceSums.open({ file: join(repositories.folder, SUMS_FILE), now });
    const stored = await storedBy(platform, repository, signal);
    const writer = new SetWriter({ repository, ...identity, stored, sums });
    let committed: Pick<MadeSet, "manifest" | "snapshots"> | undefined;
    await backups.each({
      take: (piece, until) => writer.take(piece, until),
      finish: async (until) => {
        work.phase = "verifying";
        committed = await writer.commit(backups.get().withoutMemory, until);
      },
      signal,
    });
    if (committed === undefined) throw new Error("the backup ended without a manifest");
    return { ...committed, changed: writer.changed, failedCommands: backups.get().failedCommands };
  }

  /** The backup that was made counts, whatever becomes of older ones. */
  async #deleteOld(
    name: string,
    repository: Repository,
    signal: AbortSignal,
    sets: { made?: string; failed?: string; listed?: readonly Snapshot[] },
  ): Promise<void> {
    const { file, now, log } = this.#options;
    // The rule of now: it may have been changed while the backup was made.
    const { platform, targets } = await file.read();
    const keep = targets.find((target) => target.name === name)?.keep ?? null;
    if (keep === null) return;
    let pruneError: string | null = null;
    try {
      const rule = { platform, keep: parseKeep(keep), now: now().getTime(), ...sets };
      const ids = await deleteOld(repository, rule, signal);
      if (ids.length > 0) log.info({ target: name, snapshots: ids.length }, "old backups were deleted");
    } catch (error) {
      pruneError = messageOf(error);
      log.warn({ target: name, reason: pruneError }, "old backups stay");
    }
    await file.update(name, () => ({ pruneError }));
  }
}

function isFull(error: unknown): boolean {
  return error instanceof HibernautError && error.code === "resource_exhausted";
}
