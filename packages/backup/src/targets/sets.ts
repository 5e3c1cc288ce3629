/** What is at a target, as sets. Pure. */
import type { SetView } from "./contract.ts";
import { type FoundManifest, incompleteSets, type Snapshot } from "./garbage.ts";
import { appsOf, type Manifest, sizeOf } from "./manifest.ts";

/** Returns the sets in a repository, newest first. `platform` is the one that asks. */
export function setsOf(
  snapshots: readonly Snapshot[],
  manifests: readonly FoundManifest[],
  platform: string,
): SetView[] {
  const byId = new Map(snapshots.map((snapshot) => [snapshot.id, snapshot]));
  const began = beginnings(snapshots);
  const committed = manifests.flatMap(({ snapshot, manifest }) => {
    const stored = byId.get(snapshot);
    if (stored === undefined) return [];
    const own = stored.platform === platform;
    if (typeof manifest === "string")
      return [
        {
          ...nothing(stored.set, began.get(stored.set) ?? stored.time, own),
          state: "unreadable" as const,
          reason: `its manifest ${manifest}`,
        },
      ];
    const lost = manifest.pieces.filter((piece) => !byId.has(piece.snapshot));
    return [{ ...completeSet(manifest, own), ...(lost.length > 0 && lostPieces(lost.map(({ name }) => name))) }];
  });
  const incomplete = incompleteSets(snapshots).map(({ set, at, platform: of }) => nothing(set, at, of === platform));
  return newestFirst([...committed, ...incomplete]);
}

/**
 * Returns the newest complete set that was made at a moment or before it; undefined when there is none.
 *
 * @param at milliseconds since 1970
 */
export function newestAt(manifests: readonly Manifest[], at: number): Manifest | undefined {
  return newestFirst(manifests.filter((manifest) => Date.parse(manifest.at) <= at))[0];
}

/** Returns them sorted by their time. */
export function newestFirst<T extends { at: string }>(sets: readonly T[]): T[] {
  return sets.toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** When the first piece of each set was stored. The time of a manifest is that of the end, and hours may lie between the two. */
function beginnings(snapshots: readonly Snapshot[]): Map<string, string> {
  const began = new Map<string, string>();
  for (const { set, time } of snapshots) {
    const known = began.get(set);
    if (known === undefined || Date.parse(time) < Date.parse(known)) began.set(set, time);
  }
  return began;
}

function completeSet(manifest: Manifest, own: boolean): SetView {
  const { set, at, host, version, pieces, added, verified } = manifest;
  return {
    ...{ set, at, state: "complete", reason: null, own, host, version, added, verified },
    apps: appsOf(manifest),
    machines: new Set(pieces.flatMap(({ machine }) => machine ?? [])).size,
    bytes: sizeOf(manifest),
  };
}

function lostPieces(names: readonly string[]): Pick<SetView, "state" | "reason"> {
  const reason = `${names.length} of its pieces are gone, such as ${names[0] ?? ""}`;
  return { state: "unreadable", reason };
}

function nothing(set: string, at: string, own: boolean): SetView {
  return {
    ...{ set, at: new Date(at).toISOString(), state: "incomplete", own, host: null, version: null, apps: [] },
    ...{ machines: 0, bytes: 0, added: 0, verified: null, reason: "it has no manifest: its backup was not finished" },
  };
}
