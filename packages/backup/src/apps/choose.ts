/** Which set an app is restored from, and which app is tried. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import { type Choice, chooseSet } from "../targets/choose.ts";
import type { FoundManifest, Snapshot } from "../targets/garbage.ts";
import { appsOf, type Manifest } from "../targets/manifest.ts";

interface Stored {
  snapshots: readonly Snapshot[];
  manifests: readonly FoundManifest[];
  /** The platform that asks: another one's sets are only for those who name them. */
  platform: string;
}

/**
 * Returns the manifest of the set: the one that is named, or the newest complete one of this platform. Throws like
 * {@link chooseSet}, and with `failed_precondition` when a newer one cannot be read: nobody is asked who could mean that.
 */
export function chooseForApp({ snapshots, manifests, platform }: Stored, choice: Choice): Manifest {
  const own = new Set(snapshots.filter((one) => one.platform === platform).map(({ id }) => id));
  const isMeant = (id: string) => choice.set !== undefined || own.has(id);
  const { manifest, passedOver } = chooseSet(
    snapshots.filter(({ id }) => isMeant(id)),
    manifests.filter(({ snapshot }) => isMeant(snapshot)),
    choice,
  );
  // One without a manifest was canceled, or is being made.
  const broken = passedOver.find(({ state }) => state === "unreadable")?.set;
  if (broken === undefined) return manifest;
  const message = `The newest set, ${broken}, cannot be read; the one before is ${manifest.set}. To use that, name it as the set.`;
  throw new HibernautError("failed_precondition", message, { set: broken, before: manifest.set });
}

/** Returns the app to drill: of those in the set, the one whose last drill is the longest ago, and first one that had none. */
export function nextToDrill(manifest: Manifest, drilled: ReadonlyMap<string, string>): string {
  const apps = appsOf(manifest);
  const [next] = apps.toSorted((a, b) => Date.parse(drilled.get(a) ?? NEVER) - Date.parse(drilled.get(b) ?? NEVER));
  if (next !== undefined) return next;
  throw new HibernautError("failed_precondition", `The set ${manifest.set} has no app, so there is nothing to try.`);
}

const NEVER = new Date(0).toISOString();
