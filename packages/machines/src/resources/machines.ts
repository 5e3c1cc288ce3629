/** Machines: their configuration, their actions and their history. */
import { isDeepStrictEqual } from "node:util";
import { type MachineConfig, machineEgress, type StopConfig, withEgress } from "@hibernaut/domain/config";
import { requireSupported } from "@hibernaut/domain/config-rules";
import type { EgressConfig } from "@hibernaut/domain/egress";
import type { CreateMachine, MachineEvent, MachineRecord, MachineState, Prewarm } from "@hibernaut/domain/machine";
import type { Sandbox } from "@hibernaut/domain/sandbox";
import { signalNumber } from "@hibernaut/domain/signals";
import type { VmmUsage } from "@hibernaut/hypervisor";
import { networkMachine } from "@hibernaut/network";
import type { ChangeListener, ChangePhase } from "../changes.ts";
import type { MachineController } from "../controller.ts";
import type { ControllerSet } from "../controller-set.ts";
import { createMachine, withMounts } from "../create-machine.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { type RefusedConnection, RefusedConnections } from "../refused-connections.ts";
import { requireApp } from "../require-app.ts";
import { requireFreePorts } from "../tcp-ports.ts";
import { type MachineView, viewOf } from "../view.ts";
import type { Waited, WaitOptions, WaitTarget } from "../waiting.ts";
import type { Drain } from "./drain.ts";

/** Who asked for an action, for the machine's history. */
interface Requester {
  /** Absent for a client of the API. */
  by?: "proxy" | "itself" | "prewarm";
  /** What the machine is needed for, or what is wrong with it. */
  reason?: string;
}

/** What an idle machine does, and what it does instead of a suspend that is not possible. */
interface SleepPolicy {
  how: "suspend" | "stop";
  otherwise: "stop" | "off";
}

/**
 * Creates, changes and destroys machines. An `id` may also be a machine's name, or the beginning of its id.
 *
 * Every method throws a HibernautError, `draining` when it would start a machine during a drain, `not_found` when there is no such app or machine. Actions return as soon as
 * the intent is stored; {@link Machines.wait} waits for the result.
 */
export class Machines {
  readonly #deps: MachineDependencies;
  readonly #controllers: ControllerSet;

  readonly #drain: Pick<Drain, "refuseWork">;
  readonly #refused = new RefusedConnections();

  /** `drain` refuses what would start a machine while the platform drains. */
  constructor(deps: MachineDependencies, controllers: ControllerSet, drain: Pick<Drain, "refuseWork">) {
    this.#deps = deps;
    this.#controllers = controllers;
    this.#drain = drain;
  }

  /** Creates a machine and starts it, unless `skipLaunch` is set. Imports its image and creates its volumes first. */
  async create(app: string, input: CreateMachine, signal?: AbortSignal): Promise<MachineView> {
    this.#drain.refuseWork();
    const refuseWork = () => this.#drain.refuseWork();
    const context = { deps: this.#deps, controllers: this.#controllers, refuseWork, signal };
    return this.#view(await createMachine(context, app, input));
  }

  /** Returns the machines of all apps, app by app. */
  all(): MachineView[] {
    return this.#deps.store.apps.list().flatMap(({ name }) => this.list(name));
  }

  /** Returns the machines of an app, oldest first. */
  list(app: string): MachineView[] {
    requireApp(this.#deps.store.apps, app);
    return this.#controllers.of(app).map((controller) => this.#view(controller));
  }

  /** Returns a machine; a destroyed one too, by its whole id. */
  get(app: string, id: string): MachineView {
    return this.#view(this.#controllers.find(app, id));
  }

  /** Returns what the machine's VMM takes of the host at the moment. Undefined without one. */
  usage(app: string, id: string): Promise<VmmUsage | undefined> {
    return this.#controllers.find(app, id).usage();
  }

  /** Returns up to `limit` events of the machine's history, newest first. */
  events(app: string, id: string, limit: number): MachineEvent[] {
    return this.#deps.store.machines.events(this.#controllers.find(app, id).record.id, limit);
  }

  /**
   * Replaces the whole configuration and moves the machine to the current guest bundle. Without a configuration, only
   * the guest bundle changes: nothing, if it is the current one, and not before the next cold start if the machine has
   * a snapshot.
   *
   * With `prewarm`, a machine that sleeps is started with the new configuration, and sleeps again once it is healthy, or
   * also says that it is prepared. One that runs has no use for it.
   *
   * An image may take minutes to arrive: `requireStill` throws if nothing is to change any more.
   */
  async update(
    app: string,
    id: string,
    config?: MachineConfig,
    { prewarm, requireStill }: { prewarm?: Prewarm["until"]; requireStill?(): void } = {},
  ): Promise<MachineView> {
    const controller = this.#controllers.find(app, id);
    this.#drain.refuseWork();
    const { record } = controller;
    if (config === undefined) {
      controller.command({ type: "move_bundle" });
      return this.#view(controller);
    }
    requireSupported(config);
    await this.#deps.network.requireRules(machineEgress(config));
    this.#deps.quotas?.requireChange(record, config);
    using image = await this.#deps.images.hold(config.image);
    using held = await this.#deps.volumes.hold(app, config.mounts, record.id);
    this.#drain.refuseWork();
    requireFreePorts(this.#deps, record.app, config);
    this.#deps.quotas?.requireChange(controller.record, config);
    requireStill?.();
    const update = { type: "update", config: withMounts(config, held), imageDigest: image.digest } as const;
    controller.command(prewarm === undefined ? update : { ...update, prewarm });
    return this.#view(controller);
  }

  /**
   * Resumes the machine from its snapshot, or starts it cold. A start `by` the proxy does not reset the count of
   * restarts, so that an app that keeps crashing does not get all its retries again with every request.
   */
  start(app: string, id: string, requester: Requester = {}): { previousState: MachineState } {
    const controller = this.#controllers.find(app, id);
    const previousState = controller.record.state;
    if (previousState !== "running") this.#drain.refuseWork();
    controller.command({ type: "start", details: { ...requester }, unattended: requester.by === "proxy" });
    return { previousState };
  }

  /** Gives up the memory of a machine that sleeps: its next start is cold, with its files as they are. Does nothing to others. */
  dropMemory(app: string, id: string): void {
    this.#controllers.find(app, id).dropSnapshot("memory_dropped: its client wants it without");
  }

  /** Nothing is left of the connections of a sleeping machine to apps of its network: its guest is told so at its next wake. */
  disconnect(app: string, id: string): void {
    this.#controllers.find(app, id).inside.streams.disconnect();
  }

  /** Throws `failed_precondition`, with every reason, when the machine cannot be suspended. */
  suspend(app: string, id: string, requester: Requester = {}): void {
    this.#controllers.find(app, id).command({ type: "suspend", details: { ...requester } });
  }

  /**
   * With `auto_destroy`, a machine that a client or the machine itself stops is destroyed after it. `terms` are of this stop
   * alone, in place of `stop_config`; of one under way, they only bring the end nearer. Throws `invalid_argument` for what is
   * not a signal.
   */
  stop(app: string, id: string, requester: Requester = {}, terms: StopConfig = {}): void {
    const wanted = requester.by === undefined || requester.by === "itself";
    const controller = this.#controllers.find(app, id);
    controller.command({ type: "stop", details: { ...requester, ...terms }, wanted, ...onTerms(terms) });
  }

  /** The same, but the next start finds the writable layer as it is. `why` is in the machine's history. */
  stopWithLayer(app: string, id: string, why: string): void {
    const details = { reason: why, keep_layer: true };
    this.#controllers.find(app, id).command({ type: "stop", keepLayer: why, details });
  }

  /** `terms` are those of its stop: see {@link stop}. */
  restart(app: string, id: string, terms: StopConfig = {}): void {
    const controller = this.#controllers.find(app, id);
    this.#drain.refuseWork();
    controller.command({ type: "restart", details: { ...terms }, ...onTerms(terms) });
  }

  /**
   * Takes the machine out of the proxy's hands, or with `on: false` gives it back: a cordoned machine gets no new
   * requests, is not woken by them, and is not put to sleep when it is idle.
   */
  cordon(app: string, id: string, { on }: { on: boolean }): void {
    this.#controllers.find(app, id).cordon(on);
  }

  /**
   * Changes where the machine may connect to, at once, awake or asleep; null: wherever the network lets machines. Rejects
   * with `invalid_argument`, and with `failed_precondition` where the network cannot keep rules.
   */
  async setEgress(app: string, id: string, egress: EgressConfig | null): Promise<MachineView> {
    const { network } = this.#deps;
    const controller = this.#controllers.find(app, id);
    const config = withEgress(controller.record.config, egress);
    requireSupported(config);
    await network.requireRules(machineEgress(config));
    const before = controller.record.config.network?.egress ?? null;
    // Before the network, which may be asked to attach the machine meanwhile.
    controller.note({ type: "egress", egress });
    try {
      await network.govern(networkMachine(controller.record));
    } catch (error) {
      const isMine = isDeepStrictEqual(controller.record.config.network?.egress ?? null, egress);
      if (isMine) controller.note({ type: "egress", egress: before });
      throw error;
    }
    return this.#view(controller);
  }

  /** The machine with this id was kept from connecting to something by its own rules. Its history tells some of that. */
  wasRefused(id: string, refused: RefusedConnection): void {
    const controller = this.#controllers.get(id);
    const details = controller && this.#refused.add(id, refused, Date.now());
    if (details !== undefined) controller?.note({ type: "egress_refused", details });
  }

  /** The records of all machines, without what follows from them. */
  records(): MachineRecord[] {
    return this.#controllers.all().flatMap(({ record }) => (record.pooled === true ? [] : [record]));
  }

  /** The record of the machine with exactly this id. Undefined when there is none, or it waits in a pool. */
  recordOf(id: string): MachineRecord | undefined {
    const record = this.#controllers.get(id)?.record;
    return record?.pooled === true ? undefined : record;
  }

  /** Changes what makes the machine a sandbox. */
  setSandbox(app: string, id: string, sandbox: Sandbox): void {
    this.#controllers.find(app, id).note({ type: "sandbox", sandbox });
  }

  /** Ends the prewarm in progress, if there is one. */
  endPrewarm(app: string, id: string, status: "done" | "taken" | "failed", reason: string | null): void {
    this.#controllers.find(app, id).note({ type: "prewarm_over", status, reason });
  }

  /** Throws `failed_precondition` while the machine is running, unless `force` is set. */
  destroy(app: string, id: string, { force = false } = {}): void {
    this.#controllers.find(app, id).command({ type: "destroy", force });
  }

  /**
   * Puts an idle machine to sleep. A machine that cannot be suspended does `otherwise`, and its history says why:
   * `stop` keeps its writable layer, `off` keeps it running. `details` go into the history.
   */
  sleep(app: string, id: string, { how, otherwise }: SleepPolicy, details: Record<string, unknown>): void {
    this.#controllers.find(app, id).command({ type: "sleep", how, otherwise, details });
  }

  /**
   * Settles when the machine has reached one of the states, even if it has already left it again. Rejects with
   * `deadline_exceeded` after `timeoutMs`, with `failed_precondition` once the machine is destroyed and can no longer
   * get there, and with the signal's reason.
   */
  async wait(app: string, id: string, targets: WaitTarget[], options: WaitOptions): Promise<Waited> {
    return this.#controllers.wait(this.#controllers.find(app, id), targets, options);
  }

  /**
   * Pauses a running machine, with its disks flushed, while `work` runs. Throws `failed_precondition` when the machine
   * is busy or not running. `id` is the whole id.
   */
  whilePaused(id: string, work: () => Promise<void>): Promise<void> {
    return this.#controllers.require(id).whilePaused(work);
  }

  /**
   * Calls `listener` for every machine that is new or has changed, in the order of the phases, but not for those in pools. Returns a function that
   * ends that.
   */
  subscribe(phase: ChangePhase, listener: ChangeListener): () => void {
    return this.#controllers.changes.subscribe(phase, (record) => {
      // It becomes known when it is taken.
      if (record.pooled !== true) listener(record);
    });
  }

  #view({ record, listening }: MachineController): MachineView {
    const view = viewOf(record, { ...this.#deps, warm: this.#controllers.warm });
    return listening === undefined ? view : { ...view, listening };
  }
}

/** Throws `invalid_argument` for what is not a signal. */
function onTerms(terms: StopConfig): { terms?: StopConfig } {
  if (terms.signal !== undefined) signalNumber(terms.signal, "signal");
  return Object.keys(terms).length === 0 ? {} : { terms };
}
