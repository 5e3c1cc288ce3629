/** Which volumes of a machine moved to another host with it. A volume that never moved is where it is stored. */
import type { MachineRecord } from "../../domain/machine.ts";
import { volumesOf } from "../../domain/mounts.ts";
import type { VolumeElsewhere } from "../../machines/ownership.ts";
import type { Directory } from "../contract.ts";
import { KEYS, type VolumeOwner } from "../keys.ts";

/** Returns the key of a volume's {@link VolumeOwner}. */
export function volumeKey(app: string, id: string): string {
  return `${KEYS.volumes}${app}/${id}`;
}

/**
 * Of the volumes that a host has stored with a machine, those that another host has, as far as the directory knows, which may
 * be older than what is stored. `read` returns the value of a key. Pure.
 */
export function volumesElsewhere(
  record: Pick<MachineRecord, "app" | "config" | "pending">,
  host: string,
  read: (key: string) => unknown,
): VolumeElsewhere[] {
  return volumesOf(record).flatMap((id) => {
    const owner = read(volumeKey(record.app, id)) as VolumeOwner | undefined;
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
    const entry = await directory.get(key);
    if (entry !== undefined) values.set(key, JSON.parse(entry.value));
  }
  return volumesElsewhere(record, host, (key) => values.get(key));
}
