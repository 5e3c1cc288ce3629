/** Volumes as E2B's clients see them: by names of which an app has one each, and mounted when a sandbox is made. */
import { wantedOf } from "@hibernaut/domain/mounts";
import type { Mount } from "@hibernaut/domain/volume";
import type { VolumeView } from "@hibernaut/volumes";
import type { SandboxNeeds } from "../contract.ts";
import { Refusal } from "../failure.ts";
import type { Openers } from "./openers.ts";

/** Where a client wants a volume. */
export interface WantedMount {
  /** Its name, or its id. */
  name: string;
  /** Absolute. */
  path: string;
}

/** How many volumes a machine has at most: the schema of its configuration says so, too. */
const MOST_MOUNTS = 8;

export class SandboxVolumes {
  readonly #volumes: SandboxNeeds["volumes"];
  readonly #openers: Pick<Openers, "keepOff" | "has">;
  /** Names of volumes that are being made, with their apps. */
  readonly #making = new Set<string>();

  /** `openers`: what has a volume while its files are wanted, and makes room for a sandbox. */
  constructor({ volumes }: Pick<SandboxNeeds, "volumes">, openers: Pick<Openers, "keepOff" | "has">) {
    this.#volumes = volumes;
    this.#openers = openers;
  }

  list(app: string): VolumeView[] {
    return this.#volumes.list(app);
  }

  /** Throws 404 unless the app has a volume with exactly this id. */
  get(app: string, id: string): VolumeView {
    const found = this.find(app, id);
    if (found === undefined) throw new Refusal(404, `There is no volume '${id.slice(0, 80)}'.`);
    return found;
  }

  find(app: string, id: string): VolumeView | undefined {
    return this.#volumes.list(app).find((volume) => volume.id === id);
  }

  /** Makes an empty volume. Rejects with 409 when the app has one of this name, also one that is just being made. */
  async create(app: string, name: string): Promise<VolumeView> {
    const making = `${app}/${name}`;
    if (this.#making.has(making) || this.#volumes.list(app).some((volume) => volume.name === name))
      throw new Refusal(409, `There is a volume '${name.slice(0, 80)}' already. Use it, or choose another name.`);
    this.#making.add(making);
    try {
      // Clients know of no snapshots, and could not delete a volume that has some.
      return await this.#volumes.create(app, { name, scheduledSnapshots: false });
    } finally {
      this.#making.delete(making);
    }
  }

  /**
   * Deletes a volume. Rejects with 404 when there is none, and with 409 while a machine has it, or it has snapshots: a client may
   * empty a volume, but what an administrator has kept of it is not the client's.
   */
  async destroy(app: string, id: string): Promise<void> {
    this.get(app, id);
    if ((await this.#volumes.listSnapshots(app, id)).length > 0)
      throw new Refusal(
        409,
        `Volume ${id} has snapshots, which would go with it. An administrator deletes it: \`hibernaut volumes destroy ${id} --app ${app}\`.`,
      );
    const kept = await this.#openers.keepOff([id]);
    await this.#volumes.destroy(app, id).finally(() => kept[Symbol.dispose]());
  }

  /**
   * Returns the mounts of a new machine, by ids, which nobody opens until they are disposed of: store the machine before that.
   * Rejects with 404 for a volume that there is not, and with 409 for one that is not free.
   */
  async hold(app: string, wanted: readonly WantedMount[]): Promise<{ mounts: Mount[] } & Disposable> {
    const mounts = this.#mountsOf(app, wanted);
    const kept = await this.#openers.keepOff(mounts.map(wantedOf));
    return { mounts, [Symbol.dispose]: () => kept[Symbol.dispose]() };
  }

  #mountsOf(app: string, wanted: readonly WantedMount[]): Mount[] {
    if (wanted.length > MOST_MOUNTS) throw new Refusal(400, `A sandbox has at most ${MOST_MOUNTS} volumes.`);
    const all = this.#volumes.list(app);
    const chosen: Mount[] = [];
    for (const { name, path } of wanted) {
      const named = all.filter((volume) => volume.name === name || volume.id === name);
      const free = named.find(
        ({ id, machineId }) =>
          (machineId === null || this.#openers.has(id)) && !chosen.some(({ volume }) => volume === id),
      );
      if (free === undefined) throw unavailable(name, named);
      chosen.push({ volume: free.id, path });
    }
    return chosen;
  }
}

function unavailable(name: string, [found]: readonly VolumeView[]): Refusal {
  const word = name.slice(0, 80);
  if (found === undefined)
    return new Refusal(
      404,
      `There is no volume '${word}'. Make it with \`Volume.create\`, or with \`hibernaut volumes create\`.`,
    );
  const where = found.machineId === null ? "is mounted twice" : `belongs to sandbox ${found.machineId}`;
  return new Refusal(
    409,
    `Volume '${word}' ${where}, and one sandbox has it at a time, at one path. Kill that sandbox, or mount another volume.`,
  );
}
