/** What a repository no longer needs. Pure. */
import { type Keep, keptSets } from "./keep.ts";
import type { Manifest } from "./manifest.ts";

/** A snapshot of the repository as far as it matters here. */
export interface Snapshot {
  id: string;
  /** RFC 3339. */
  time: string;
  /** The name of the file in it. */
  file: string;
  /** The set and the platform that it was made for. */
  set: string;
  platform: string;
  isManifest: boolean;
}

/** A manifest, or why it cannot be used, with the snapshot that it is in. */
export interface FoundManifest {
  snapshot: string;
  manifest: Manifest | string;
}

/**
 * A set without a manifest is left alone for two days, in milliseconds: a second platform that was restored from a backup may
 * be writing it.
 */
const INCOMPLETE_MS = 48 * 60 * 60_000;

interface Repository {
  /** The platform that asks. Nothing of another one is touched. */
  platform: string;
  snapshots: readonly Snapshot[];
  manifests: readonly FoundManifest[];
  keep: Keep;
  /** Milliseconds since 1970. */
  now: number;
  /** The set that was just made, which is kept whatever the rule says. */
  made?: string | undefined;
  /** A set that has just failed: nobody else is writing it. */
  failed?: string | undefined;
}

/**
 * Returns the ids of the snapshots that no kept set refers to. None at all while any manifest of the platform cannot be read:
 * what it refers to is unknown, which never means that it refers to nothing.
 */
export function unneeded({ platform, snapshots, manifests, keep, now, made, failed }: Repository): string[] {
  const own = snapshots.filter((snapshot) => snapshot.platform === platform);
  const found = new Map(manifests.map(({ snapshot, manifest }) => [snapshot, manifest]));
  const committed = own.filter(({ isManifest }) => isManifest).map(({ id }) => ({ id, manifest: found.get(id) }));
  const readable = committed.flatMap(({ id, manifest }) => (typeof manifest === "object" ? [{ id, manifest }] : []));
  if (readable.length < committed.length || readable.length === 0) return [];
  // One that has lost pieces is not deleted, and takes no other's place.
  const there = new Set(snapshots.map(({ id }) => id));
  const isWhole = ({ manifest }: { manifest: Manifest }) =>
    manifest.pieces.every(({ snapshot }) => there.has(snapshot));
  const [whole, broken] = [readable.filter(isWhole), readable.filter((one) => !isWhole(one))];
  const kept = [
    ...broken,
    ...whole.filter(({ manifest }) => manifest.set === made),
    ...keptSets(
      whole.map(({ id, manifest }) => ({ id, manifest, at: manifest.at })),
      keep,
      now,
    ),
  ];
  // Those of other platforms may refer to anything, too, if someone copied one.
  const foreign = manifests.flatMap(({ manifest }) => (typeof manifest === "object" ? [manifest] : []));
  const needed = new Set([
    ...kept.flatMap(({ id, manifest }) => [id, ...manifest.pieces.map(({ snapshot }) => snapshot)]),
    ...foreign.filter((each) => each.platform !== platform).flatMap(({ pieces }) => pieces.map((one) => one.snapshot)),
  ]);
  const committedSets = new Set(readable.map(({ manifest }) => manifest.set));
  const isOver = ({ set, time }: Snapshot) =>
    committedSets.has(set) || set === failed || now - Date.parse(time) > INCOMPLETE_MS;
  return own.filter((snapshot) => !needed.has(snapshot.id) && isOver(snapshot)).map(({ id }) => id);
}

/** The sets of a platform, or of all, whose pieces are there and which do not count, because their manifest is not. */
export function incompleteSets(snapshots: readonly Snapshot[]): { set: string; at: string; platform: string }[] {
  const whole = new Set(snapshots.filter(({ isManifest }) => isManifest).map(({ set }) => set));
  const left = new Map<string, { set: string; at: string; platform: string }>();
  for (const { set, time, platform } of snapshots) {
    const known = left.get(set);
    if (!whole.has(set) && (known === undefined || time < known.at)) left.set(set, { set, at: time, platform });
  }
  return [...left.values()];
}
