/** Which volumes of a machine moved to another host with it. A volume that never moved is where it is stored. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { volumesOf } from "@hibernaut/domain/mounts";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import type { VolumeElsewhere } from "@hibernaut/machines";
import type { Change, Condition, Directory } from "../contract.ts";
import { KEYS, type VolumeOwner } from "../keys.ts";
import { put, read } from "../stored.ts";

/** For how long the directory remembers that a volume was destroyed, in milliseconds: as long as of machines. */
const DESTROYED_MS = 30 * 24 * 60 * 60 * 1000;

/** A volume as a host has it. */
export type VolumeHere = Required<Pick<VolumeRecord, "id" | "epoch">>;

/** Returns the key of a volume's {@link VolumeOwner}. */
export function volumeKey(app: string, id: string): string {
  return `${KEYS.volumes}${app}/${id}`;
}

/**
 * Of the volumes that a host has stored with a machine, those that another host has, as far as the directory knows, which may
 * be older than what is stored. `valueOf` returns the value of a key. Pure.
 */
export function volumesElsewhere(
  record: Pick<MachineRecord, "app" | "config" | "pending">,
  host: string,
  valueOf: (key: string) => unknown,
): VolumeElsewhere[] {
  return volumesOf(record).flatMap((id) => {
    const owner = valueOf(volumeKey(record.app, id)) as VolumeOwner | undefined;
    return owner === undefined || owner.host === host ? [] : [{ id, epoch: owner.epoch }];
  });
}

/** The same, as the directory says. Rejects when it does not answer. */
export async function readVolumesElsewhere(
  record: MachineRecord,
  host: string,
  directory: Directory,
): Promise<VolumeElsewhere[]> {
  const values = new Map<string, unknown>();
  for (const id of volumesOf(record)) {
    const key = volumeKey(record.app, id);
    values.set(key, (await read(directory, key))?.value);
  }
  return volumesElsewhere(record, host, (key) => values.get(key));
}

/**
 * The host that has a newer copy of a volume than this one, or one that cannot be told from a newer one. Undefined when the
 * copy here counts, also because that host is gone for good. `valueOf` returns the value of a key. Pure.
 */
export function newerOn(
  { app, id, epoch = 0 }: Pick<VolumeRecord, "app" | "id" | "epoch">,
  host: string,
  valueOf: (key: string) => unknown,
): string | undefined {
  const owner = valueOf(volumeKey(app, id)) as VolumeOwner | undefined;
  if (owner === undefined || owner.destroyed === true || owner.host === host || owner.epoch < epoch) return undefined;
  return valueOf(`${KEYS.members}${owner.host}`) === undefined ? undefined : owner.host;
}

/**
 * Notes that a volume was destroyed here: what another host has of it is not outdated any more, unless it is still with the
 * machine that left that host. Rejects when the directory does not answer.
 */
export async function forgetVolume(
  { app, id }: Pick<VolumeRecord, "app" | "id">,
  { directory, host }: { directory: Directory; host: string },
): Promise<void> {
  const owner = await read<VolumeOwner>(directory, volumeKey(app, id));
  // Another host that has it now keeps its record.
  if (owner?.value.host !== host) return;
  const destroyed: VolumeOwner = { ...owner.value, destroyed: true };
  const lease = await directory.lease(DESTROYED_MS);
  await directory.transact([owner], [{ ...put(owner.key, destroyed), lease }]);
}

/**
 * Of the volumes that a host has stored, those that are its own with a newer epoch than the stored one, with the newer one: a
 * claim raised it. Rejects when the directory does not answer.
 */
export async function readRaised(
  app: string,
  volumes: readonly VolumeHere[],
  { directory, host }: { directory: Directory; host: string },
): Promise<VolumeHere[]> {
  const raised: VolumeHere[] = [];
  for (const { id, epoch } of volumes) {
    const owner = (await read<VolumeOwner>(directory, volumeKey(app, id)))?.value;
    if (owner?.host === host && owner.epoch > epoch) raised.push({ id, epoch: owner.epoch });
  }
  return raised;
}

/**
 * What makes the volumes of a machine that is claimed again this host's, too: after a restore, the directory may know nothing
 * of their moves, or something older. A volume that never moved needs no record.
 */
export async function volumeClaims(
  app: string,
  volumes: readonly VolumeHere[],
  { directory, host }: { directory: Directory; host: string },
): Promise<{ conditions: Condition[]; changes: Change[] }> {
  const conditions: Condition[] = [];
  const changes: Change[] = [];
  for (const { id, epoch } of volumes) {
    const key = volumeKey(app, id);
    const found = await read<VolumeOwner>(directory, key);
    const owner = found?.value;
    const isKnown = owner === undefined ? epoch === 0 : owner.host === host && owner.epoch >= epoch;
    if (isKnown) continue;
    // Above what another host may still have of it.
    const above = owner === undefined || owner.host === host ? 0 : owner.epoch + 1;
    const claimed: VolumeOwner = { host, epoch: Math.max(epoch, above) };
    conditions.push({ key, revision: found?.revision ?? 0 });
    changes.push(put(key, claimed));
  }
  return { conditions, changes };
}
