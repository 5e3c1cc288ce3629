/** Machines on their way to another host. What carries them there is not known here. */
import { HibernautError } from "@hibernaut/domain/errors";
import { isResting, type MachineRecord, mayTravel } from "@hibernaut/domain/machine";
import type { HypervisorIdentity } from "@hibernaut/hypervisor";
import { abortable } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import { type TakenFrom, takenFrom } from "@hibernaut/snapshots";
import type { MachineController } from "../controller.ts";
import type { ControllerSet } from "../controller-set.ts";
import type { Command } from "../decide/index.ts";
import { Departure, MoveUnsettled } from "../departure.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { originOf } from "../effects/ports.ts";
import { eligibilityOf } from "../eligibility.ts";

/** How long a machine may take to come to rest before it is moved, in milliseconds: a suspend with its hooks, or a stop. */
const REST_MS = 120_000;

/** How often it is looked at whether the machine rests. Twice without a crash; each crash on the way needs up to three more. */
const MAX_ROUNDS = 10;

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

/** What the other host has to know of a machine that has moved there. */
export interface Departed {
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

  /** Rejects with `failed_precondition` when the machine cannot be moved as it is, and with `VmmHeld` while its VMM has not ended. */
  async papers(id: string, { cold }: Pick<DepartOptions, "cold">): Promise<Papers> {
    const controller = this.#controllers.require(id);
    const { record } = controller;
    await this.#deps.hypervisor.requireEnded(id);
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
   * Brings the machine to rest, and does `work` while nothing starts or changes it. `work` resolves when
   * the machine is not this host's any more. When it rejects, the machine is as it was before; only after
   * {@link MoveUnsettled} it stays as it is, and takes no commands, until the next platform.
   */
  async depart(
    id: string,
    { to, cold }: DepartOptions,
    work: (record: MachineRecord) => Promise<void>,
    signal: AbortSignal,
  ): Promise<Departed> {
    const controller = this.#controllers.require(id);
    const departure = new Departure(id, to);
    const { command, end } = controller.depart(departure);
    // A machine that leaves takes its memory along, but not its connections.
    const resume = this.#deps.holdBack?.(id);
    const stay = { ran: false };
    let moved = false;
    let unsettled = false;
    try {
      await this.#toRest(controller, { cold, command, stay }, signal);
      // A seal is of use on this host only, and a reader less makes the copy faster.
      this.#deps.snapshots.interrupt(id);
      await work(controller.record);
      moved = true;
      return { start: stay.ran || departure.wanted };
    } catch (error) {
      unsettled = error instanceof MoveUnsettled;
      throw error;
    } finally {
      if (!unsettled) end();
      resume?.();
      if (!moved && !unsettled && (stay.ran || departure.wanted)) this.#startAgain(controller);
    }
  }

  /**
   * Resolves in the moment in which the machine has no guest and nothing of it is in progress. `stay.ran` says whether it
   * was ended for the move. A guest that crashes on the way is started again by its restart policy: that is waited for, and
   * then it is ended again.
   */
  async #toRest(
    controller: MachineController,
    { cold, command, stay }: { cold: boolean; command: MachineController["command"]; stay: { ran: boolean } },
    signal: AbortSignal,
  ): Promise<void> {
    const { id } = controller.record;
    for (let rounds = 0; rounds < MAX_ROUNDS; rounds += 1) {
      await this.#settled(controller, signal);
      // A stop does that itself.
      if (controller.record.state === "running" && !cold)
        await abortable(this.#deps.finishRequests?.(id) ?? Promise.resolve(), signal);
      const ending = endOf(controller.record, cold);
      if (ending !== undefined) {
        stay.ran ||= ending.type !== "discard_snapshot";
        command(ending);
        await this.#settled(controller, signal);
        requireEnded(controller.record);
        continue;
      }
      await controller.evict("move");
      // A VMM that was killed and has not ended may write to what would be copied.
      await this.#deps.hypervisor.requireEnded(id);
      const { record, work } = controller;
      if (mayTravel(record) && work.queued === 0 && endOf(record, cold) === undefined) return;
    }
    throw restless(id);
  }

  async #settled(controller: MachineController, signal: AbortSignal): Promise<void> {
    if (isResting(controller.record.state) && !controller.work.queued) return;
    await this.#controllers.wait(controller, ["settled"], { timeoutMs: REST_MS, signal });
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

/** Returns what ends the machine's guest, or gives up its memory. Undefined when it has neither, or is on its way to another state. Pure. */
function endOf({ id, state, snapshot }: MachineRecord, cold: boolean): Command | undefined {
  if (state === "destroyed") throw new HibernautError("not_found", `Machine ${id} no longer exists.`);
  const details = { by: "move" };
  if (state === "restarting" || (state === "running" && cold))
    return { type: "stop", keepLayer: "it is moved to another host", details };
  if (state === "running") return { type: "suspend", details };
  if (cold && snapshot !== null && mayTravel({ state }))
    return { type: "discard_snapshot", reason: "moved_cold: it was moved without its memory" };
  return undefined;
}

/** Throws when the machine still runs after it was told to end. */
function requireEnded({ id, state, stateReason }: MachineRecord): void {
  if (state !== "running") return;
  throw new HibernautError(
    "failed_precondition",
    `Machine ${id} could not be suspended, and keeps running here: ${stateReason ?? "see its events"}. Add --cold to move it without its memory.`,
    { machine_id: id },
  );
}

function restless(id: string): HibernautError {
  const message = `Machine ${id} crashes and starts again while it is brought to rest, and was not moved. See its events. Stop it, and then move it.`;
  return new HibernautError("failed_precondition", message, { machine_id: id });
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
