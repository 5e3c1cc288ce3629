/** Which set an app is restored from. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { FoundManifest, Snapshot } from "../targets/garbage.ts";
import { appsOf, type Manifest } from "../targets/manifest.ts";
import { newestAt, newestFirst } from "../targets/sets.ts";
import type { SetChoice } from "./contract.ts";

interface Stored {
  snapshots: readonly Snapshot[];
  manifests: readonly FoundManifest[];
  /** The platform that asks: another one's sets are only for those who name them. */
  platform: string;
}

/**
 * Returns the manifest of the set: the one that is named, or the newest whole one of this platform. Throws `not_found` when there is
 * none, and `failed_precondition` when a newer one cannot be read, unless a name says which is meant.
 */
export function chooseSet({ snapshots, manifests, platform }: Stored, { set, at }: SetChoice): Manifest {
  const there = new Set(snapshots.map(({ id }) => id));
  const readable = manifests.flatMap(({ manifest }) => (typeof manifest === "object" ? [manifest] : []));
  const whole = readable.filter(({ pieces }) => pieces.every(({ snapshot }) => there.has(snapshot)));
  if (set !== undefined) {
    const named = whole.find((manifest) => manifest.set === set);
    if (named !== undefined) return named;
    throw new HibernautError(
      "not_found",
      `The target has no complete set ${set.slice(0, 100)}. See \`hibernaut backup list\`.`,
    );
  }
  const chosen = newestAt(
    whole.filter((manifest) => manifest.platform === platform),
    at ?? Number.POSITIVE_INFINITY,
  );
  if (chosen === undefined)
    throw new HibernautError(
      "not_found",
      "The target has no complete set of this platform that is old enough. See `hibernaut backup list`; one of another platform has to be named.",
    );
  const broken = brokenSince(chosen, at ?? Number.POSITIVE_INFINITY, { snapshots, manifests, platform });
  if (broken === undefined) return chosen;
  const message = `The newest set, ${broken}, cannot be read; the one before is ${chosen.set}. To use that, name it as the set.`;
  throw new HibernautError("failed_precondition", message, { set: broken, before: chosen.set });
}

/** The name of the newest set that should count and does not, if it is newer than the chosen one. */
function brokenSince(chosen: Manifest, at: number, { snapshots, manifests, platform }: Stored): string | undefined {
  const there = new Set(snapshots.map(({ id }) => id));
  const found = new Map(manifests.map(({ snapshot, manifest }) => [snapshot, manifest]));
  const bad = snapshots.filter(({ id, isManifest, platform: of, time }) => {
    const manifest = found.get(id);
    const isWhole = typeof manifest === "object" && manifest.pieces.every(({ snapshot }) => there.has(snapshot));
    return isManifest && of === platform && !isWhole && Date.parse(time) <= at;
  });
  const [newest] = newestFirst(bad.map(({ set, time }) => ({ set, at: time })));
  return newest !== undefined && Date.parse(newest.at) > Date.parse(chosen.endedAt) ? newest.set : undefined;
}

/** Returns the app to drill: of those in the set, the one whose last drill is the longest ago, and first one that had none. */
export function nextToDrill(manifest: Manifest, drilled: ReadonlyMap<string, string>): string {
  const apps = appsOf(manifest);
  const [next] = apps.toSorted((a, b) => Date.parse(drilled.get(a) ?? NEVER) - Date.parse(drilled.get(b) ?? NEVER));
  if (next !== undefined) return next;
  throw new HibernautError("failed_precondition", `The set ${manifest.set} has no app, so there is nothing to try.`);
}

const NEVER = new Date(0).toISOString();
