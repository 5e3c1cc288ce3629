/** Which machine has which volume. It is stored with the machine and nowhere else, so that both are never at odds. */
import type { MachineRecord } from "../domain/machine.ts";
import type { Store } from "../store/contract.ts";
import type { Mount, VolumeRecord } from "../domain/volume.ts";
import { chooseVolume, DEFAULT_SIZE_GB, newVolume, resolved, volumesOf, wantedOf } from "./rules.ts";

/** What was chosen for a machine that is about to be stored. */
interface Choice {
  mounts: Mount[];
  /** Those of the volumes that do not exist yet. */
  missing: VolumeRecord[];
  /** Nobody else gets the volumes until this is called. */
  release(): void;
}

export class Attachments {
  readonly #store: Pick<Store, "machines" | "volumes">;
  /** Promised to machines that are about to be stored. */
  readonly #held = new Set<string>();

  constructor(store: Pick<Store, "machines" | "volumes">) {
    this.#store = store;
  }

  machineOf(volumeId: string): MachineRecord | undefined {
    return this.#store.machines.list().find((machine) => volumesOf(machine).includes(volumeId));
  }

  /** Why nobody else can have the volume now; undefined when it is free. */
  taken(volumeId: string): string | undefined {
    const machine = this.machineOf(volumeId);
    if (machine !== undefined) return `it belongs to machine ${machine.id}`;
    return this.#held.has(volumeId) ? "a machine is being made with it" : undefined;
  }

  /** Decided in one go, without waiting: two machines never get the same volume. */
  choose(app: string, mounts: readonly Mount[], machineId: string | undefined): Choice {
    const machine = this.#store.machines.list(app).find(({ id }) => id === machineId);
    const own = machine === undefined ? [] : volumesOf(machine);
    const mine: string[] = [];
    const release = () => mine.forEach((id) => void this.#held.delete(id));
    const taken = (id: string) => {
      if (mine.includes(id)) return "another mount has it";
      return own.includes(id) ? undefined : this.taken(id);
    };
    const missing: VolumeRecord[] = [];
    const choose = (mount: Mount): Mount => {
      const found = chooseVolume(mount, { volumes: this.#store.volumes.list(app), taken, own });
      const volume = found ?? newVolume(app, wantedOf(mount), mount.size_gb ?? DEFAULT_SIZE_GB);
      if (found === undefined) missing.push(volume);
      mine.push(volume.id);
      this.#held.add(volume.id);
      return resolved(mount, volume);
    };
    try {
      return { mounts: mounts.map(choose), missing, release };
    } catch (error) {
      release();
      throw error;
    }
  }
}
