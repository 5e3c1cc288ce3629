/** Which machine has which volume. Stored in the machine's record alone, so that no second record can contradict it. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { volumesOf } from "@hibernaut/domain/mounts";
import type { Mount, VolumeRecord } from "@hibernaut/domain/volume";
import type { Store } from "@hibernaut/store";
import { chooseVolume, resolved, volumeFor } from "./rules.ts";

/** Volumes that are reserved for a machine that is about to be stored. */
interface Reservation {
  mounts: Mount[];
  /** The volumes among them that do not exist yet. */
  missing: VolumeRecord[];
  /** Ends the reservation. Until then, no other machine gets the volumes. */
  release(): void;
}

interface AttachmentsOptions {
  now(): Date;
  /** The host of a cluster that has a newer copy of a volume. */
  newerOn(volume: VolumeRecord): string | undefined;
}

/** Finds out which machine has a volume, and reserves volumes for machines. */
export class Attachments {
  readonly #store: Pick<Store, "machines" | "volumes">;
  /** Ids of volumes that are reserved for machines that are about to be stored. */
  readonly #reserved = new Set<string>();

  readonly #options: AttachmentsOptions;

  constructor(store: Pick<Store, "machines" | "volumes">, options: AttachmentsOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** The machine that has the volume, or is about to. */
  machineOf(volumeId: string): MachineRecord | undefined {
    return this.#store.machines.list().find((machine) => volumesOf(machine).includes(volumeId));
  }

  /** Why the volume is not free, e.g. `it belongs to machine ...`. Undefined when it is. */
  takenBy(volumeId: string): string | undefined {
    const machine = this.machineOf(volumeId);
    if (machine !== undefined) return `it belongs to machine ${machine.id}`;
    return this.#reserved.has(volumeId) ? "a machine is being created with it" : undefined;
  }

  /**
   * Chooses a volume for each mount. Decides without waiting for anything, so two machines never get the same volume.
   * Throws a HibernautError when a volume cannot be had.
   */
  reserve(app: string, mounts: readonly Mount[], machineId: string | undefined): Reservation {
    const machine = this.#store.machines.list(app).find(({ id }) => id === machineId);
    const attached = machine === undefined ? [] : volumesOf(machine);
    const chosen: string[] = [];
    const release = () => chosen.forEach((id) => void this.#reserved.delete(id));
    const takenBy = (id: string) => {
      if (chosen.includes(id)) return "another mount has it";
      return attached.includes(id) ? undefined : this.takenBy(id);
    };
    const missing: VolumeRecord[] = [];
    const choose = (mount: Mount): Mount => {
      const { newerOn } = this.#options;
      const found = chooseVolume(mount, { volumes: this.#store.volumes.list(app), takenBy, newerOn, attached });
      const volume = found ?? volumeFor(app, mount, this.#options.now());
      if (found === undefined) missing.push(volume);
      chosen.push(volume.id);
      this.#reserved.add(volume.id);
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
