/** Which set a restore takes, and which newer ones cannot be restored. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { SetView } from "./contract.ts";
import type { FoundManifest, Snapshot } from "./garbage.ts";
import type { Manifest } from "./manifest.ts";
import { newestAt, newestFirst, setsOf } from "./sets.ts";

/** An error names as many sets as this, the newest. */
const MOST_NAMED = 20;

/** Which set to restore. By default, the newest. */
export interface Choice {
  /** The name of a set. */
  set?: string | undefined;
  /** The newest that was made then or before, in milliseconds since 1970. */
  at?: number | undefined;
}

/** What is restored. */
export interface Chosen {
  manifest: Manifest;
  /** Newer sets that were wanted first and cannot be restored, newest first. */
  passedOver: SetView[];
}

/**
 * Returns the set to restore. Throws `not_found` when there is none that is complete, and `failed_precondition` when the
 * target has sets of several platforms and nothing says which one is meant. Broken sets count as sets of their platform: what
 * cannot be read is not gone.
 */
export function chooseSet(
  snapshots: readonly Snapshot[],
  found: readonly FoundManifest[],
  { set, at = Number.POSITIVE_INFINITY }: Choice,
): Chosen {
  const views = setsOf(snapshots, found, "");
  const complete = new Set(views.filter(({ state }) => state === "complete").map((view) => view.set));
  const whole = found.flatMap(({ manifest }) =>
    typeof manifest === "object" && complete.has(manifest.set) ? [manifest] : [],
  );
  const broken = views.filter(({ state }) => state !== "complete");
  const platforms = new Set(snapshots.filter(({ isManifest }) => isManifest).map(({ platform }) => platform));
  if (set === undefined && platforms.size > 1) {
    const message = `The target has sets of ${platforms.size} platforms. Name the set to restore with --set. ${knownSets(whole)}`;
    throw new HibernautError("failed_precondition", message);
  }
  const manifest = set === undefined ? newestAt(whole, at) : whole.find((one) => one.set === set);
  if (manifest === undefined) {
    const which = set === undefined ? "no set that is complete and old enough" : `no complete set ${set}`;
    const why = reasonsOf(broken.filter((one) => (set === undefined ? Date.parse(one.at) <= at : one.set === set)));
    throw new HibernautError("not_found", [`The target has ${which}.`, ...why, knownSets(whole)].join(" "));
  }
  const isNewer = (one: SetView) => Date.parse(one.at) > Date.parse(manifest.at) && Date.parse(one.at) <= at;
  return { manifest, passedOver: set === undefined ? broken.filter(isNewer) : [] };
}

/** Says why sets cannot be restored, in a sentence for each of the newest ones. */
export function reasonsOf(broken: readonly SetView[]): string[] {
  return broken
    .slice(0, MOST_NAMED)
    .map(({ set, state, reason }) => `The set ${set} is ${state}: ${reason ?? "its content is not known"}.`);
}

function knownSets(whole: readonly Manifest[]): string {
  if (whole.length === 0) return "Nothing in it is complete.";
  const named = newestFirst(whole).slice(0, MOST_NAMED);
  const more = whole.length > named.length ? `, and ${whole.length - named.length} older ones` : "";
  return `It has ${named.map(({ set, host }) => `${set} of ${host}`).join(", ")}${more}.`;
}
