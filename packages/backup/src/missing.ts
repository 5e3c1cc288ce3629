/** What the archive still lacks: pure. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { VolumeRecord, VolumeSnapshotRecord } from "@hibernaut/domain/volume";

/** What is in the archive. */
export interface Included {
  /** The version of each machine when it was copied, by id. */
  machines: Map<string, string>;
  /** Ids. */
  volumes: Set<string>;
  volumeSnapshots: Set<string>;
}

/** What a copy of the database speaks of. */
export interface Recorded {
  machines: readonly MachineRecord[];
  volumes: readonly VolumeRecord[];
  volumeSnapshots: readonly VolumeSnapshotRecord[];
}

/** Returns an archive's content with nothing in it. */
export function nothing(): Included {
  return { machines: new Map(), volumes: new Set(), volumeSnapshots: new Set() };
}

/**
 * Names what the database speaks of and the archive does not have: it was made, or was updated, since. Machines are
 * compared by version, because an update changes volumes and size. A volume or snapshot that is not whole does not count.
 * Images and guest bundles are not looked at: they never change, and are sent after the database.
 */
export function missingFrom(included: Included, { machines, volumes, volumeSnapshots }: Recorded): string[] {
  const whole = <T extends { state: string }>(records: readonly T[]) =>
    records.filter(({ state }) => state === "created");
  return [
    ...machines.filter(({ id, version }) => included.machines.get(id) !== version).map(({ id }) => `machine ${id}`),
    ...whole(volumes)
      .filter(({ id }) => !included.volumes.has(id))
      .map(({ id }) => `volume ${id}`),
    ...whole(volumeSnapshots)
      .filter(({ id }) => !included.volumeSnapshots.has(id))
      .map(({ id }) => `volume snapshot ${id}`),
  ];
}
