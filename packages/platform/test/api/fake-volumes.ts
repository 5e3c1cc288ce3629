/** Volumes by their real rules, of the double's machines: records in memory, files without a file system. */
import type { VolumeStore } from "../../src/store/contract.ts";
import type { VolumeRecord, VolumeSnapshotRecord } from "../../src/domain/volume.ts";
import { VolumeFiles } from "../../src/volumes/files.ts";
import { Volumes } from "../../src/volumes/index.ts";
import type { FakeMachineService } from "./fake-service.ts";

class EmptyFiles extends VolumeFiles {
  override async format(): Promise<void> {}
}

/** The files are in `folder`. */
export function fakeVolumes(machines: FakeMachineService, folder: string): Volumes {
  const all = () => [...machines.machines.values()].filter(({ state }) => state !== "destroyed");
  return new Volumes({
    store: {
      apps: { insert: () => false, get: (name) => machines.apps.get(name), list: () => [], delete: () => false },
      machines: {
        insert: () => false,
        update: () => {},
        get: (id) => machines.machines.get(id),
        list: (app) => all().filter((record) => app === undefined || record.app === app),
        events: () => [],
      },
      volumes: volumesInMemory(),
    },
    files: new EmptyFiles(folder),
    holdStill: (_machineId, work) => work(),
    onTrouble: () => {},
  });
}

function volumesInMemory(): VolumeStore {
  const volumes = new Map<string, VolumeRecord>();
  const snapshots = new Map<string, VolumeSnapshotRecord>();
  return {
    insert: (volume) => volumes.set(volume.id, volume).has(volume.id),
    update: (volume) => void volumes.set(volume.id, volume),
    remove: (id) => void volumes.delete(id),
    get: (id) => volumes.get(id),
    list: (app) => [...volumes.values()].filter((volume) => app === undefined || volume.app === app),
    insertSnapshot: (snapshot) => void snapshots.set(snapshot.id, snapshot),
    updateSnapshot: (snapshot) => void snapshots.set(snapshot.id, snapshot),
    removeSnapshot: (id) => void snapshots.delete(id),
    getSnapshot: (id) => snapshots.get(id),
    listSnapshots: (volumeId) =>
      [...snapshots.values()].filter((snapshot) => snapshot.volumeId === volumeId).toReversed(),
  };
}
