/** Machines on their way to another host. What carries them there is not known here. */
import { HibernautError } from "../../domain/errors.ts";
import { isResting, type MachineRecord } from "../../domain/machine.ts";
import type { HypervisorIdentity } from "../../hypervisor/contract.ts";
import { abortable } from "../../lib/async.ts";
import { messageOf } from "../../lib/text.ts";
import type { TakenFrom } from "../../snapshots/manifest.ts";
import { takenFrom } from "../../snapshots/manifest.ts";
import type { MachineController } from "../controller.ts";
import type { ControllerSet } from "../controller-set.ts";
import { Departure, MoveUnsettled } from "../departure.ts";
import { originOf } from "../effects/ports.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { eligibilityOf } from "../view.ts";
import { waitFor } from "../waiting.ts";

/** How long a machine may take to come to rest before it is moved, in milliseconds: a suspend with its hooks, or a stop. */
const REST_MS = 120_000;

/** What the other host needs to know to say whether it can take the machine. */
export interface Papers {
  record: MachineRecord;
  /** What its snapshot was taken from, or would be. Null without one: it will start from scratch. */
  taken: TakenFrom | null;
  /** SHA-256 of its root file system, whose parts its memory holds. Absent without memory. */
  rootfs?: string | undefined;
}

export interface DepartOptions {
  /** The host that the machine goes to. */
  to: string;
  /** Without its memory: a machine that runs is stopped, and a snapshot is given up. */
  cold: boolean;
}

/** How a move ended. */
export interface Departed {
  /** Whether the machine is the other host's. */
  moved: boolean;
  /** Whether it has to be started there: it ran before, or something asked for it meanwhile. */
  start: boolean;
}

export class Departures {
  readonly #deps: MachineDependencies;
  readonly #controllers: ControllerSet;

  constructor(deps: MachineDependencies, controllers: ControllerSet) {
    this.#deps = deps;
    this.#controllers = controllers;
  }

  /** Rejects with `failed_precondition` when the machine cannot be moved as it is. */
  async papers(id: string, { cold }: Pick<DepartOptions, "cold">): Promise<Papers> {
    const controller = this.#controllers.require(id);
    const { record } = controller;
    if (cold) return { record, taken: null };
    if (record.state === "running") requireEligible(record, this.#deps);
    const running = controller.origin();
    const rootfs = await this.#deps.images.fingerprint(record.imageDigest);
    if (running !== undefined) return { record, taken: takenFrom(running), rootfs };
    const { snapshot } = record;
    if (snapshot === null) return { record, taken: null };
    const taken = await this.#deps.snapshots.takenFrom(id, snapshot.generation);
    return typeof taken === "string" ? { record, taken: null } : { record, taken, rootfs };
  }

  /** Why a host with this hypervisor could not resume the machine's memory. Undefined when it could, or there is none. */
  refusalOn({ record, taken }: Papers, identity: HypervisorIdentity): string | undefined {
    if (taken === null) return undefined;
    return this.#deps.snapshots.refusal(taken, originOf(record, this.#deps, identity));
  }

  /**
   * Brings the machine to rest, and does `work` while nothing starts or changes it. `work` resolves with whether the
   * machine is the other host's now. If it is not, and also when this rejects, the machine is as it was before. Only after
   * {@link MoveUnsettled} it stays as it is, and takes no commands, until the next platform.
   */
  async depart(
    id: string,
    { to, cold }: DepartOptions,
    work: (record: MachineRecord) => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<Departed> {
    const controller = this.#controllers.require(id);
    const departure = new Departure(id, to);
    const { command, end } = controller.depart(departure);
    // A machine that leaves takes its memory along, but not its connections.
    const resume = this.#deps.holdBack?.(id);
    let ran = false;
    let moved = false;
    let unsettled = false;
    try {
      await this.#settled(controller, signal);
      ran = controller.record.state === "running" || controller.record.state === "restarting";
      if (ran) await abortable(this.#deps.finishRequests?.(id) ?? Promise.resolve(), signal);
      await this.#rest(controller, { cold, command }, signal);
      await controller.evict("move");
      // A seal is of use on this host only, and a reader less makes the copy faster.
      this.#deps.snapshots.interrupt(id);
      moved = await work(controller.record);
      return { moved, start: ran || departure.wanted };
    } catch (error) {
      unsettled = error instanceof MoveUnsettled;
      throw error;
    } finally {
      if (!unsettled) end();
      resume?.();
      if (!moved && !unsettled && (ran || departure.wanted)) this.#startAgain(controller);
    }
  }

  async #rest(
    controller: MachineController,
    { cold, command }: { cold: boolean; command: MachineController["command"] },
    signal: AbortSignal,
  ): Promise<void> {
    const { record } = controller;
    const { state, id } = record;
    if (state === "destroyed") throw new HibernautError("not_found", `Machine ${id} no longer exists.`);
    const details = { by: "move" };
    if (state === "restarting" || (state === "running" && cold))
      command({ type: "stop", keepLayer: "it is moved to another host", details });
    else if (state === "running") command({ type: "suspend", details });
    else if (cold && record.snapshot !== null)
      command({ type: "discard_snapshot", reason: "moved_cold: it was moved without its memory" });
    else return;
    await this.#settled(controller, signal);
    const { state: now, stateReason } = controller.record;
    if (now !== "running") return;
    throw new HibernautError(
      "failed_precondition",
      `Machine ${id} could not be suspended, and keeps running here: ${stateReason ?? "see its events"}. Add --cold to move it without its memory.`,
      { machine_id: id },
    );
  }

  async #settled(controller: MachineController, signal: AbortSignal): Promise<void> {
    if (isResting(controller.record.state) && !controller.work.queued) return;
    const sources = { ...this.#deps, changes: this.#controllers.changes };
    await waitFor(controller, sources, ["settled"], { timeoutMs: REST_MS, signal });
  }

  #startAgain(controller: MachineController): void {
    try {
      controller.command({ type: "start", details: { by: "move" } });
    } catch (error) {
      const { id } = controller.record;
      this.#deps.log.warn(
        { machine: id, reason: messageOf(error) },
        "a machine that was not moved did not start again",
      );
    }
  }
}

function requireEligible(record: MachineRecord, deps: MachineDependencies): void {
  const { reasons } = eligibilityOf(record, deps);
  if (reasons.length === 0) return;
  throw new HibernautError(
    "failed_precondition",
    `Machine ${record.id} cannot be suspended: ${reasons.join("; ")}. Add --cold to move it without its memory.`,
    { machine_id: record.id, reasons },
  );
}
