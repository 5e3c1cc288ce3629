/** What is done with the sets of a repository besides writing them. */
import { HibernautError } from "@hibernaut/domain/errors";
import { type Snapshot, unneeded } from "./garbage.ts";
import type { Keep } from "./keep.ts";
import type { StoredPiece } from "./manifest.ts";
import type { Repository } from "./repository.ts";
import { setsOf } from "./sets.ts";

/**
 * Pieces of this many of the latest sets are reused. What never changes is in each set while it exists; more sets than one
 * are read because one may be broken, and what comes back after a week need not be sent again.
 */
const REUSED_SETS = 10;

/** Returns the pieces that the latest sets of a platform have, as far as they are there, oldest first. */
export async function storedBy(platform: string, repository: Repository, signal: AbortSignal): Promise<StoredPiece[]> {
  const snapshots = await repository.snapshots(signal);
  const there = new Set(snapshots.map(({ id }) => id));
  const own = snapshots.filter((snapshot) => snapshot.platform === platform && snapshot.isManifest);
  const pieces = (await repository.manifests(own.slice(-REUSED_SETS), signal)).flatMap(({ manifest }) =>
    typeof manifest === "object" ? manifest.pieces : [],
  );
  return pieces.filter(({ snapshot }) => there.has(snapshot));
}

/** Which sets are kept, and what is known of the repository. */
interface Rule {
  platform: string;
  keep: Keep;
  now: number;
  made?: string;
  failed?: string;
  /** What was there a moment ago. By default, it is listed. */
  listed?: readonly Snapshot[] | undefined;
}

/**
 * Deletes what no kept set of a platform needs, and returns the ids of the snapshots. Rejects, with nothing deleted, when a
 * manifest cannot be read.
 */
export async function deleteOld(
  repository: Repository,
  { listed, ...rule }: Rule,
  signal: AbortSignal,
): Promise<string[]> {
  const snapshots = listed ?? (await repository.snapshots(signal));
  const manifests = await repository.manifests(snapshots, signal);
  const unread = manifests.find(({ manifest }) => typeof manifest === "string");
  if (unread !== undefined) {
    const message = `The manifest in the snapshot ${unread.snapshot.slice(0, 8)} ${String(unread.manifest)}, so nothing is deleted. If it is lost, forget that snapshot with restic.`;
    throw new HibernautError("failed_precondition", message);
  }
  const ids = unneeded({ ...rule, snapshots, manifests });
  await repository.forget(ids, signal);
  return ids;
}

/** Rejects unless everything that sets need is there, and, if all data is read, is what was stored. */
export async function checkSets(repository: Repository, readData: boolean, signal: AbortSignal): Promise<void> {
  await repository.removeStaleLocks(signal);
  await repository.check(readData ? "all" : 0, signal);
  const { snapshots, manifests } = await repository.all(signal);
  const bad = setsOf(snapshots, manifests, "").find(({ state }) => state === "unreadable");
  if (bad === undefined) return;
  const message = `The set ${bad.set} cannot be restored: ${bad.reason ?? ""}. Use another one, and back up again.`;
  throw new HibernautError("failed_precondition", message, { set: bad.set });
}
