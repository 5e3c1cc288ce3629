/** Machines that come from another host. */
import { rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { pinned } from "@hibernaut/domain/pinned";
import { isThere } from "@hibernaut/lib/absence";
import { flush } from "@hibernaut/lib/durable";
import type { MachineDependencies } from "../dependencies.ts";
import { originOf } from "../effects/ports.ts";
import { newRecord } from "../new-record.ts";
import type { Papers } from "./departures.ts";

/** A machine that is recreated on another host. */
type Anew = Pick<
  MachineRecord,
  "id" | "app" | "name" | "address" | "version" | "config" | "imageDigest" | "createdAt"
> & {
  epoch: number;
  /** The host that was lost. */
  lostHost: string;
};

export class Arrivals {
  readonly #deps: MachineDependencies;

  constructor(deps: MachineDependencies) {
    this.#deps = deps;
  }

  /**
   * Why the machine could not run here as it is: a stable word, a colon and what differs. Undefined when it could. Imports
   * its image if that is not here; rejects as the image store does.
   */
  async unfit(papers: Papers): Promise<string | undefined> {
    const { address } = papers.record;
    if (!this.#deps.network.owns(address))
      return `network_changed: ${address} is not an address of this host's network`;
    return this.unfitState(papers);
  }

  /** The same for the state of a machine from which others are born: they get addresses of their own. */
  async unfitState({ record, taken, rootfs }: Papers): Promise<string | undefined> {
    const { bundles, snapshots, hypervisor, store } = this.#deps;
    if (store.apps.get(record.app) === undefined) return `there is no app ${record.app} yet`;
    if (taken !== null && bundles.get(record.bundleVersion) === undefined)
      return `guest_bundle_changed: this host does not have guest bundle ${record.bundleVersion}`;
    const refusal = taken && snapshots.refusal(taken, originOf(record, this.#deps, hypervisor.identity()));
    return refusal ?? (await this.#image(record)) ?? (taken === null ? undefined : this.#rootfs(record, rootfs));
  }

  /** What is stored here of a machine that arrives: as it was, except for what it could not be started with here. */
  adapted(record: MachineRecord, version: string): MachineRecord {
    const { bundles, settings } = this.#deps;
    const missing = bundles.get(record.bundleVersion) === undefined;
    return { ...record, region: settings.region, drained: false, ...(missing && { bundleMove: { version } }) };
  }

  /** Returns the record of a machine that has no files, once its image is here: it starts from scratch. */
  async anew({ id, app, name, address, epoch, version, config, imageDigest, createdAt, lostHost }: Anew) {
    const { images, bundles, settings, clock } = this.#deps;
    const here = (await images.get(imageDigest)) ?? (await images.ensure(config.image));
    const made = newRecord({
      ...{ app, name, config, address, imageDigest: here.digest },
      region: settings.region,
      bundleVersion: bundles.current.version,
      createdAt: clock?.() ?? new Date(),
    });
    const coldReason = `host_lost: ${lostHost}`;
    const record: MachineRecord = { ...made, id, version, epoch, createdAt, coldReason, state: "stopped" };
    return record;
  }

  /** Puts the files of a machine in their place. They replace what an earlier stay may have left. */
  async place(id: string, folder: string): Promise<void> {
    const { files } = this.#deps;
    const target = files.paths(id).folder;
    // The platform ended between this and storing the machine.
    if (!(await isThere(folder)) && (await isThere(target))) return;
    await rm(target, { recursive: true, force: true });
    await rename(folder, target);
    await flush(dirname(target));
  }

  /** Keeps the files of a machine that arrived, and is another host's by now, for a while. */
  async keep(id: string, epoch: number, folder: string): Promise<void> {
    await this.#deps.files.quarantineFolder(folder, id, epoch);
  }

  /** The snapshot of a machine that came is sealed again: the host's view of its file is another one. */
  seal({ id, snapshot }: MachineRecord): void {
    if (snapshot !== null) this.#deps.snapshots.arrived(id, snapshot.generation);
  }

  /** The guest's memory holds parts of the file system, at the places that they have in its file. */
  async #rootfs({ imageDigest }: MachineRecord, theirs: string | undefined): Promise<string | undefined> {
    const ours = await this.#deps.images.fingerprint(imageDigest);
    if (theirs === undefined || ours === theirs) return undefined;
    return `image_changed: both hosts have built ${imageDigest}, with different results`;
  }

  async #image({ config, imageDigest }: MachineRecord): Promise<string | undefined> {
    const { images } = this.#deps;
    if ((await images.get(imageDigest)) !== undefined) return undefined;
    // By its digest: from the host that has it, or else from where it came.
    const image = await images.ensure(pinned(config.image, imageDigest));
    if (image.digest === imageDigest) return undefined;
    return `image_changed: ${config.image} is ${image.digest} now, and the machine has ${imageDigest}`;
  }
}

/** Throws `failed_precondition` for a machine that would not fit. */
export function refuseUnfit(id: string, host: string, reason: string, { cold }: { cold: boolean }): never {
  const advice = cold
    ? "Choose another host."
    : "Choose another host, or add --cold to move it without its memory: it keeps its files, and starts from scratch there.";
  throw new HibernautError(
    "failed_precondition",
    `Machine ${id} cannot resume on host ${host}: ${reason}. It stays where it was. ${advice}`,
    { machine_id: id, host, reason },
  );
}
