/** What is a volume, and which one a machine gets: pure rules. */
import { randomBytes } from "node:crypto";
import { HibernautError } from "../domain/errors.ts";
import type { MachineRecord } from "../domain/machine.ts";
import type { Mount, VolumeRecord, VolumeSnapshotRecord } from "../domain/volume.ts";

export const DEFAULT_SIZE_GB = 1;
export const DEFAULT_RETENTION_DAYS = 5;
const DAY_MS = 24 * 60 * 60 * 1000;

const NAME = /^[a-z0-9](?:[a-z0-9_]{0,28}[a-z0-9])?$/;
const ID = /^vol_[0-9a-f]{16}$/;

/** `vol_` or `vs_`, and 16 hex digits. */
export function newId(kind: "vol" | "vs"): string {
  return `${kind}_${randomBytes(8).toString("hex")}`;
}

/** The record of a volume that is about to be made. */
export function newVolume(app: string, name: string, sizeGb: number): VolumeRecord {
  const createdAt = new Date().toISOString();
  const snapshotRetention = DEFAULT_RETENTION_DAYS;
  return { id: newId("vol"), app, name, sizeGb, state: "creating", snapshotRetention, createdAt };
}

/** Throws `invalid_argument` for what cannot name a volume. An id cannot: a mount could mean either. */
export function checkName(name: string): void {
  if (NAME.test(name) && !ID.test(name)) return;
  const message = `\`${name.slice(0, 60)}\` cannot name a volume. Use 1 to 30 of a-z, 0-9 and _, with none of _ at either end.`;
  throw new HibernautError("invalid_argument", message, { field: "name", value: name });
}

/** The ids of the volumes that a machine has, or is about to have. */
export function volumesOf({ config, pending }: Pick<MachineRecord, "config" | "pending">): string[] {
  return [...(config.mounts ?? []), ...(pending?.config.mounts ?? [])].map(wantedOf);
}

/** The name or id that a mount asks for; the id, once it is stored. */
export function wantedOf({ volume, source }: Mount): string {
  return volume ?? source ?? "";
}

/** Which volumes a choice is made from. */
interface Candidates {
  /** All of the app, oldest first. */
  volumes: readonly VolumeRecord[];
  /** Why a volume is not to be had, e.g. `it belongs to machine ...`; undefined when it is. */
  taken(id: string): string | undefined;
  /** Those that the machine has already. */
  own: readonly string[];
}

/** The volume for a mount, or undefined when one has to be made. Throws where an id was named that cannot be had. */
export function chooseVolume(mount: Mount, { volumes, taken, own }: Candidates): VolumeRecord | undefined {
  const wanted = wantedOf(mount);
  if (!ID.test(wanted)) {
    checkName(wanted);
    const free = volumes.filter(({ id, name, state }) => name === wanted && state === "created" && !taken(id));
    return free.find(({ id }) => own.includes(id)) ?? free[0];
  }
  const found = volumes.find(({ id }) => id === wanted);
  if (found === undefined)
    throw new HibernautError("not_found", `There is no volume ${wanted}. See \`hibernaut volumes list\`.`, {
      volume_id: wanted,
    });
  const reason = taken(wanted) ?? (found.state === "created" ? undefined : `it is still ${found.state}`);
  if (reason === undefined) return found;
  throw new HibernautError(
    "failed_precondition",
    `Volume ${wanted} cannot be mounted: ${reason}. A volume belongs to one machine at a time; name another, or destroy that machine first.`,
    { volume_id: wanted },
  );
}

/** A mount as it is stored: with the id, and the name so that people and `deploy` see what was asked for. */
export function resolved({ path, size_gb }: Mount, { id, name }: Pick<VolumeRecord, "id" | "name">): Mount {
  return { volume: id, name, path, ...(size_gb !== undefined && { size_gb }) };
}

/** Whether a snapshot is over the days that its volume keeps them. */
export function isExpired(
  { createdAt }: Pick<VolumeSnapshotRecord, "createdAt">,
  { snapshotRetention }: Pick<VolumeRecord, "snapshotRetention">,
  now: number,
): boolean {
  return now - Date.parse(createdAt) > snapshotRetention * DAY_MS;
}
