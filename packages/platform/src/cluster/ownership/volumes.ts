/** Which volumes of a machine moved to another host with it. A volume that never moved is where it is stored. */
import type { MachineRecord } from "../../domain/machine.ts";
import type { Directory } from "../contract.ts";
import { KEYS, type VolumeOwner } from "../keys.ts";

/** Returns the key of a volume's {@link VolumeOwner}. */
export function volumeKey(app: string, id: string): string {
  return `${KEYS.volumes}${app}/${id}`;
}

/** Returns the ids of the volumes that a machine has, or is about to have. */
export function volumesOf({ config, pending }: Pick<MachineRecord, "config" | "pending">): string[] {
  const mounts = [...(config.mounts ?? []), ...(pending?.config.mounts ?? [])];
  return [...new Set(mounts.flatMap(({ volume }) => volume ?? []))];
}

/**
 * Of the volumes that a host has stored with a machine, those that are another host's. `read` returns the value of a key. What
 * is older than the machine that is stored, as in a directory that was restored, says nothing. Pure.
 */
export function goneVolumes(record: MachineRecord, host: string, read: (key: string) => unknown): string[] {
  return volumesOf(record).filter((id) => {
    const owner = read(volumeKey(record.app, id)) as VolumeOwner | undefined;
    if (owner === undefined || owner.host === host) return false;
    return owner.machine !== record.id || owner.epoch > (record.epoch ?? 0);
  });
}

/** The same, as the directory says. Rejects when it does not answer. */
export async function readGoneVolumes(record: MachineRecord, host: string, directory: Directory): Promise<string[]> {
  const values = new Map<string, unknown>();
  for (const id of volumesOf(record)) {
    const key = volumeKey(record.app, id);
    const entry = await directory.get(key);
    if (entry !== undefined) values.set(key, JSON.parse(entry.value));
  }
  return goneVolumes(record, host, (key) => values.get(key));
}
