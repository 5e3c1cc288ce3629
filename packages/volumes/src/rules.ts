/** Rules for volumes, and for which one a machine gets. Pure. */
import { randomBytes } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import { wantedOf } from "@hibernaut/domain/mounts";
import { isVolumeId, volumeNameRefusal } from "@hibernaut/domain/naming";
import type { Mount, VolumeRecord, VolumeSnapshotRecord } from "@hibernaut/domain/volume";
import { given } from "@hibernaut/lib/given";
import { newSchedule } from "./schedule.ts";

export const DEFAULT_SIZE_GB = 1;
export const DEFAULT_RETENTION_DAYS = 5;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Makes an id: `vol_` or `vs_`, and 16 hex digits. */
export function newId(kind: "vol" | "vs"): string {
  return `${kind}_${randomBytes(8).toString("hex")}`;
}

/** Returns the record of a volume that is about to be made. */
export function newVolume(app: string, name: string, sizeGb: number): VolumeRecord {
  const createdAt = new Date().toISOString();
  const snapshotRetention = DEFAULT_RETENTION_DAYS;
  return { id: newId("vol"), app, name, sizeGb, state: "creating", snapshotRetention, createdAt };
}

/** Returns the record of a volume that is about to be made for a mount. */
export function volumeFor(app: string, mount: Mount, now: Date): VolumeRecord {
  const { size_gb: sizeGb = DEFAULT_SIZE_GB, snapshot_retention: snapshotRetention, scheduled_snapshots: on } = mount;
  return {
    ...newVolume(app, wantedOf(mount), sizeGb),
    ...(snapshotRetention !== undefined && { snapshotRetention }),
    ...(on !== undefined && { schedule: on ? newSchedule(now) : null }),
  };
}

/** Throws `invalid_argument` unless the name is valid. */
export function checkName(name: string): void {
  const message = volumeNameRefusal(name);
  if (message === undefined) return;
  throw new HibernautError("invalid_argument", message, { field: "name", value: name });
}

/** The volumes to choose from. */
interface Candidates {
  /** All of the app's volumes, oldest first. */
  volumes: readonly VolumeRecord[];
  /** Why a volume is not free, e.g. `it belongs to machine ...`. Undefined when it is. */
  takenBy(id: string): string | undefined;
  /** The host of a cluster that has a newer copy of a volume. */
  newerOn(volume: VolumeRecord): string | undefined;
  /** Ids of the volumes that the machine already has. */
  attached: readonly string[];
}

/**
 * Chooses the volume for a mount. Undefined when one has to be made. Throws when the mount names an id that does not
 * exist or is not free, and when all that it names is outdated.
 */
export function chooseVolume(mount: Mount, candidates: Candidates): VolumeRecord | undefined {
  const { volumes, takenBy, attached } = candidates;
  const wanted = wantedOf(mount);
  const newerOn = (volume: VolumeRecord) => (attached.includes(volume.id) ? undefined : candidates.newerOn(volume));
  if (!isVolumeId(wanted)) {
    checkName(wanted);
    const named = volumes.filter(({ id, name, state }) => name === wanted && state === "created" && !takenBy(id));
    const free = named.filter((volume) => newerOn(volume) === undefined);
    const chosen = free.find(({ id }) => attached.includes(id)) ?? free[0];
    // A new one in its place would be empty, and what is on the other host is meant.
    const [old] = named;
    const host = chosen === undefined && old !== undefined ? newerOn(old) : undefined;
    if (old !== undefined && host !== undefined) throw outdated(old, host);
    return chosen;
  }
  const found = volumes.find(({ id }) => id === wanted);
  if (found === undefined)
    throw new HibernautError("not_found", `There is no volume ${wanted}. See \`hibernaut volumes list\`.`, {
      volume_id: wanted,
    });
  const reason = takenBy(wanted) ?? (found.state === "created" ? undefined : `it is still ${found.state}`);
  const host = newerOn(found);
  if (reason === undefined && host !== undefined) throw outdated(found, host);
  if (reason === undefined) return found;
  throw new HibernautError(
    "failed_precondition",
    `Volume ${wanted} cannot be mounted: ${reason}. A volume belongs to one machine at a time. Mount another volume, or destroy that machine first.`,
    { volume_id: wanted },
  );
}

function outdated({ id, app }: VolumeRecord, host: string): HibernautError {
  return new HibernautError(
    "failed_precondition",
    `Volume ${id} cannot be mounted: what this host has of it is outdated, and host ${host} has a newer copy. Use that one, with --host ${host}, or another volume. To delete the copy here: \`hibernaut volumes destroy ${id} --app ${app}\`, with this host's address in HIBERNAUT_API_URL.`,
    { volume_id: id, host },
  );
}

/** Returns a mount as it is stored: with the volume's id, and with its name, which people and `deploy` know it by. */
export function resolved(mount: Mount, { id, name }: Pick<VolumeRecord, "id" | "name">): Mount {
  const { path, size_gb, snapshot_retention, scheduled_snapshots } = mount;
  return {
    volume: id,
    name,
    path,
    ...given({ size_gb, snapshot_retention, scheduled_snapshots }),
  };
}

/** Whether a snapshot is older than its volume keeps snapshots. `now` is in milliseconds since 1970. */
export function isExpired(
  { createdAt }: Pick<VolumeSnapshotRecord, "createdAt">,
  { snapshotRetention }: Pick<VolumeRecord, "snapshotRetention">,
  now: number,
): boolean {
  return now - Date.parse(createdAt) > snapshotRetention * DAY_MS;
}
