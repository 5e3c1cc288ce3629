/** Machines that come to this host, or leave it, in a cluster. Decided elsewhere: see {@link Ownership}. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineEvent, MachineRecord } from "@hibernaut/domain/machine";
import { volumesOf } from "@hibernaut/domain/mounts";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import { messageOf } from "@hibernaut/lib/text";
import type { VolumePapers } from "@hibernaut/volumes";
import { freeAddress } from "../address.ts";
import type { ControllerSet } from "../controller-set.ts";
import type { Command } from "../decide/index.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { eventOf, forget } from "../forget.ts";
import type { TakenAway } from "../ownership.ts";

/** A machine that comes to this host. Its files are in place, or there are none yet. */
interface TakenIn {
  record: MachineRecord;
  /** `moved_in` or `evacuated`. */
  event: "moved_in" | "evacuated";
  /** Where it comes from, for its history. */
  details: Record<string, unknown>;
  /** Start it at once. */
  start: boolean;
  /** What happened to it on other hosts, oldest first. */
  history?: readonly MachineEvent[];
  /** Volumes that came along, with their files in place. */
  volumes?: readonly VolumePapers[];
}

/** How much of a machine's history travels with it. */
const KEPT_HISTORY = 1000;
/** How long a machine may take to come to rest, in milliseconds: a suspend with its hooks, or a stop. */
const REST_MS = 120_000;

export class Custody {
  readonly #deps: MachineDependencies;
  readonly #controllers: ControllerSet;

  constructor(deps: MachineDependencies, controllers: ControllerSet) {
    this.#deps = deps;
    this.#controllers = controllers;
  }

  /** The machines that are stored here and not destroyed. */
  records(): MachineRecord[] {
    return this.#controllers.all().map(({ record }) => record);
  }

  /** Returns the machine, if it is stored here and not destroyed. */
  record(id: string): MachineRecord | undefined {
    return this.#controllers.get(id)?.record;
  }

  /** Returns the volumes that the machine has here, with how often they have changed hosts. */
  volumes(id: string): { id: string; epoch: number }[] {
    const record = this.record(id);
    const ids = record === undefined ? [] : volumesOf(record);
    const found = ids.flatMap((volume) => this.#deps.store.volumes.get(volume) ?? []);
    return found.map((volume) => ({ id: volume.id, epoch: volume.epoch ?? 0 }));
  }

  /**
   * The machine's claim was found, or made again, after the platform had to start without it, and raised the epochs of these
   * volumes.
   */
  owned(
    id: string,
    { address, epoch }: Pick<MachineRecord, "address" | "epoch">,
    raised: readonly Required<Pick<VolumeRecord, "id" | "epoch">>[] = [],
  ): void {
    const { volumes } = this.#deps.store;
    // Before the machine: without its own record, it is looked at again.
    for (const { id: volumeId, epoch: above } of raised) {
      const volume = volumes.get(volumeId);
      if (volume !== undefined) volumes.update({ ...volume, epoch: above });
    }
    this.#controllers
      .get(id)
      ?.restate(({ disputed: _over, ...record }) => ({ ...record, address, ...(epoch !== undefined && { epoch }) }));
  }

  /** Another host's older copy counts as the machine for now. Stored. */
  disputed(id: string): void {
    this.#controllers.get(id)?.restate((record) => (record.disputed === true ? record : { ...record, disputed: true }));
  }

  /** Returns a free address other than these. */
  anotherAddress(taken: ReadonlySet<string>): string {
    return freeAddress(this.#deps, taken);
  }

  /**
   * Another host may run the machine: it is suspended, or, if it cannot be, stopped with its files kept. Resolves with
   * whether it ran. Rejects when it still does.
   */
  async setAside(id: string, reason: string): Promise<boolean> {
    const controller = this.#controllers.get(id);
    if (controller === undefined) return false;
    const details = { reason };
    const settle = () => this.#controllers.wait(controller, ["settled"], { timeoutMs: REST_MS });
    const rest = (command: Command) => {
      controller.command(command);
      return settle();
    };
    // One that is starting runs in a moment.
    await settle();
    if (controller.record.state !== "running") return false;
    await rest({ type: "sleep", how: "suspend", otherwise: "stop", details });
    if (controller.record.state === "running") await rest({ type: "stop", keepLayer: reason, details });
    if (controller.record.state === "running") throw new Error("it could not be suspended or stopped, and still runs");
    return true;
  }

  /** Whether the machine is stored here and not destroyed, even if it is still being created. */
  stores(id: string): boolean {
    return (this.#deps.store.machines.get(id)?.state ?? "destroyed") !== "destroyed";
  }

  /** The epoch with which the machine is stored here. Undefined when it is not, or was never claimed. */
  epochOf(id: string): number | undefined {
    return this.stores(id) ? this.#deps.store.machines.get(id)?.epoch : undefined;
  }

  /** Another host owns the machine: its guest ends at once, and nothing of it stays but what is in quarantine. */
  async takeAway(taken: TakenAway): Promise<void> {
    const controller = this.#controllers.get(taken.id);
    if (controller === undefined) return;
    const { record } = controller;
    this.#deps.log.warn(
      { machine: taken.id, reason: taken.reason },
      "a machine is no longer this host's; it ends here",
    );
    await controller.abandon(taken.reason);
    await this.#deps.network.detach(taken.id);
    await forget(controller.record, taken, this.#deps);
    const gone = { ...record, state: "destroyed" as const, stateReason: taken.reason };
    this.#controllers.drop(taken.host === undefined ? gone : { ...gone, movedTo: taken.host });
  }

  /** Returns what happened to the machine, oldest first, as far as it is kept. */
  history(id: string): MachineEvent[] {
    return this.#deps.store.machines.events(id, KEPT_HISTORY).reverse();
  }

  /** Ends the machine's VMM, as a power cut would, because another host may start it soon. Nothing without one. */
  async fence(id: string): Promise<void> {
    await this.#controllers.get(id)?.cutPower();
  }

  /** Starts a machine that is this host's from now on, or again. Does nothing if it is not here any more. */
  start(id: string, by: "move" | "dispute" = "move"): void {
    this.#controllers.get(id)?.command({ type: "start", details: { by } });
  }

  /** Stores a machine that is this host's from now on, and takes charge of it. Does nothing if it is known already. */
  takeIn({ record, event, details, start, history = [], volumes = [] }: TakenIn): void {
    const { store, clock, log } = this.#deps;
    if (this.#controllers.get(record.id) !== undefined) return;
    const at = (clock?.() ?? new Date()).toISOString();
    const stored = { ...record, updatedAt: at };
    store.together(() => {
      this.#deps.volumes.travel.adopt(volumes);
      if (!store.machines.insert(stored, eventOf(stored, event, { at, details }), history)) throw nameTaken(record);
    });
    const controller = this.#controllers.add(stored);
    try {
      if (start) controller.command({ type: "start", details: { by: event === "evacuated" ? "evacuation" : "move" } });
    } catch (error) {
      log.warn({ machine: record.id, reason: messageOf(error) }, "a machine came to this host, and was not started");
    }
  }
}

function nameTaken({ id, app, name }: MachineRecord): HibernautError {
  return new HibernautError("already_exists", `App ${app} has another machine named ${name} on this host.`, {
    machine_id: id,
  });
}
