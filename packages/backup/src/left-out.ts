/** What a backup leaves to the next one, because it was made while the last things were copied. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import type { Store } from "@hibernaut/store";
import type { Included, Recorded } from "./missing.ts";

/** The ids of what there was when the last round of copying began. */
export interface Known {
  machines: ReadonlySet<string>;
  volumes: ReadonlySet<string>;
  volumeSnapshots: ReadonlySet<string>;
}

/**
 * Returns what the database speaks of, the backup does not have, and was made since. What was there before is never left
 * out, whatever has become of it: a backup without it fails.
 */
export function madeSince(
  known: Known,
  included: Included,
  { machines, volumes, volumeSnapshots }: Recorded,
): Recorded {
  const since = <T extends { id: string }>(
    records: readonly T[],
    before: ReadonlySet<string>,
    copied: { has(id: string): boolean },
  ) => records.filter(({ id }) => !before.has(id) && !copied.has(id));
  return {
    machines: since(machines, known.machines, included.machines),
    volumes: since(volumes, known.volumes, included.volumes),
    volumeSnapshots: since(volumeSnapshots, known.volumeSnapshots, included.volumeSnapshots),
  };
}

/** Removes them from the copy of the database that belongs to the backup. */
export function leaveOut(
  copy: Pick<Store, "machines" | "volumes">,
  { machines, volumes, volumeSnapshots }: Recorded,
  at: string,
): void {
  for (const machine of machines) copy.machines.remove(machine, leftOut(machine, at));
  for (const { id } of volumeSnapshots) copy.volumes.removeSnapshot(id);
  for (const volume of volumes) removeVolume(copy, volume);
}

function removeVolume(copy: Pick<Store, "volumes">, { id }: VolumeRecord): void {
  for (const snapshot of copy.volumes.listSnapshots(id)) copy.volumes.removeSnapshot(snapshot.id);
  copy.volumes.remove(id);
}

function leftOut({ state }: MachineRecord, at: string) {
  const details = { reason: "it was made while the backup ended, and is not in it" };
  return { at, type: "destroy", from: state, to: "destroyed", details } as const;
}
