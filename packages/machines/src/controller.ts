/**
 * One machine: carries out what {@link decide} decides. Deciding and storing is one synchronous step; the work follows
 * in the machine's queue, and its outcome is decided on in turn.
 */
import { HibernautError } from "@hibernaut/domain/errors";
import { isResting, type MachineRecord, mayTravel } from "@hibernaut/domain/machine";
import { Steps } from "@hibernaut/domain/operation";
import type { Listener } from "@hibernaut/guest";
import type { ThreadTimes, VmmRef, VmmUsage } from "@hibernaut/hypervisor";
import { abortable, never, within } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { SnapshotOrigin } from "@hibernaut/snapshots";
import type { Admission } from "./admission/admission.ts";
import type { ChangeListener } from "./changes.ts";
import { mayStart } from "./decide/commands.ts";
import { startIsDue } from "./decide/due.ts";
import {
  type Command,
  type Decision,
  type Effect,
  type EffectFailed,
  type EffectOutcome,
  type EffectWithOutcome,
  type LifecycleEvent,
  type Milestone,
  type Note,
  type Restored,
} from "./decide/index.ts";
import type { Departure } from "./departure.ts";
import type { MachineDependencies } from "./dependencies.ts";
import { type CopyTarget, copyPaused, type PausedCopy } from "./effects/copy-paused.ts";
import { discardGivenUp } from "./effects/halt.ts";
import { runEffect } from "./effects/index.ts";
import { type EffectPorts, originOf } from "./effects/ports.ts";
import { observe, takeOver, unlessHeld } from "./effects/recover.ts";
import { whilePaused } from "./effects/while-paused.ts";
import { protocolOf } from "./eligibility.ts";
import { MachineGuest } from "./guest.ts";
import { GuestEvents } from "./guest-events.ts";
import { newUlid } from "./identity.ts";
import { MachineLog } from "./logs/machine-log.ts";
import { RecordKeeper } from "./record-keeper.ts";
import { withRulesOfNow } from "./rules-of-now.ts";
import type { CommandedMachine } from "./run-command.ts";
import type { WarmKeeper } from "./warm/keeper.ts";
import { operationOf } from "./watch.ts";
import { type Task, WorkQueue } from "./work-queue.ts";

interface ControllerDependencies extends MachineDependencies {
  /** Where the paused VMMs of suspended machines are kept. */
  warm: WarmKeeper;
  /** Which starts the host has room for. */
  admission: Admission;
}

export class MachineController {
  readonly #deps: ControllerDependencies;
  readonly #queue = new WorkQueue();
  readonly #guest: MachineGuest;
  readonly #keeper: RecordKeeper;
  #closed = false;
  /** Absent unless the machine is being moved to another host. */
  #departure: Departure | undefined;
  /** What programs in the machine are told and say. */
  readonly inside = new GuestEvents();
  /** What the app prints, and what happens to the machine. */
  readonly machineLog: MachineLog;

  constructor(deps: ControllerDependencies, record: MachineRecord) {
    this.#deps = deps;
    this.machineLog = new MachineLog({
      machine: record.id,
      folder: deps.files.paths(record.id).logs,
      maxBytes: deps.settings.logMaxMb * 1024 * 1024,
      rate: { bytesPerS: deps.settings.logRateMb * 1024 * 1024, linesPerS: deps.settings.logLines },
      prepare: () => deps.files.prepare(record.id),
      ended: record.state === "destroyed",
    });
    this.#keeper = new RecordKeeper(deps, this.machineLog, record);
    const { onKeptCommand } = deps;
    if (onKeptCommand !== undefined)
      this.inside.streams.onKept = (command, label) => onKeptCommand(record.id, command, label);
    this.inside.streams.onConnection = (connection) => {
      if (deps.onLocalConnection === undefined) connection.destroy();
      else deps.onLocalConnection(record.id, connection);
    };
    this.#guest = new MachineGuest({
      machineId: record.id,
      streams: this.inside.streams,
      machineLog: this.machineLog,
      log: deps.log,
      channelTimeoutMs: deps.settings.bootTimeoutMs,
      requireEnded: () => deps.hypervisor.requireEnded(record.id),
      listener: {
        ended: () => this.#noticeEnd(),
        stalled: (why) => this.#stalled(why),
        reachability: (why) => this.#happened({ type: "reachability", why: why ?? null }),
        unkept: (reason) => {
          deps.warm.remove(record.id, reason);
          if (reason === "gone") this.#keptOver(reason);
        },
        agentFault: (fault) => deps.watch?.agentFault(fault),
      },
    });
  }

  /** What is stored of the machine; while an outcome cannot be stored, with why it is not so. Never changed in place. */
  get record(): MachineRecord {
    return this.#keeper.shown;
  }

  /** The record as it is stored, on which everything is decided. */
  get #record(): MachineRecord {
    return this.#keeper.stored;
  }

  /** Where the app listens while requests do not reach it. Undefined while they do, or that is unknown. */
  get listening(): readonly Listener[] | undefined {
    return this.#guest.live?.reachability.elsewhere;
  }

  /** How much work of the machine is in progress or waits, and whether an outcome of it cannot be stored. */
  get work(): { queued: number; unstored: boolean } {
    return { queued: this.#queue.length, unstored: this.#keeper.isUnstored };
  }

  /** Calls `listener` with the record after every change that others can see. Returns how to stop that. */
  subscribe(listener: ChangeListener): () => void {
    return this.#keeper.subscribe(listener);
  }

  /**
   * Decides, stores and begins. Throws the HibernautError of a refusal, or `host_full` when it would start a machine that
   * the host has no room for; returns as soon as the intent is stored.
   */
  command(command: Command): void {
    if (this.#departure !== undefined) return this.#departure.command(command);
    this.#obey(command);
  }

  /** The machine is being moved: until `end` is called, the departure takes its commands. Throws `aborted` during another. */
  depart(departure: Departure): { command(command: Command): void; end(): void } {
    this.#departure?.refuse();
    this.#departure = departure;
    return { command: (command) => this.#obey(command), end: () => (this.#departure = undefined) };
  }

  #obey(command: Command): void {
    if (mayStart(this.#record, command)) this.#requireStart();
    const { tell } = this.#happened(command);
    if (tell.refusal !== undefined) throw tell.refusal;
  }

  /**
   * Throws when the machine is not this host's to start, when the host has no memory for it, or its app no disk for a cold
   * start.
   */
  #requireStart(): void {
    const { id, app, config, snapshot } = this.#record;
    this.#requireRoom();
    if (snapshot === null) this.#deps.diskQuota?.requireForStart(app, config, this.#deps.files.paths(id).memory);
  }

  #requireRoom(): void {
    const refusal = this.#deps.ownership?.refusal(this.#record.id);
    if (refusal !== undefined) throw refusal;
    this.#deps.admission.require(this.#record);
  }

  /**
   * Gives a machine that rests or runs other files: `replace` puts them in their place, once the record says so. A guest ends
   * in between, as if its power was cut. What is requested meanwhile comes after it. Throws `aborted` when something is being
   * done to the machine.
   */
  async restore(becomes: Restored, replace: () => Promise<void>): Promise<void> {
    this.#departure?.refuse();
    await this.#queue.add(async () => {
      const { id, state } = this.#record;
      if (this.#closed || !(mayTravel(this.#record) || state === "running"))
        throw new HibernautError("aborted", `Machine ${id} is ${state} meanwhile. Try again.`, {
          machine_id: id,
          state,
        });
      const wasKept = this.#guest.kept !== undefined;
      this.#happened({ type: "restored", becomes });
      await this.#guest.kill();
      // The guest may have begun others until then.
      this.inside.streams.forget("the machine was restored");
      if (wasKept) this.#keptOver("discarded");
      await replace();
    });
  }

  /** The machine as a command finds it. */
  get commanded(): CommandedMachine {
    const { live } = this.#guest;
    return { record: this.#record, live, protocol: protocolOf(this.#record, this.#deps) };
  }

  /**
   * Does `work` while the guest is held still, its disks flushed. `failed_precondition` unless the machine runs and
   * nothing is in progress. What is requested meanwhile waits for it.
   */
  async whilePaused(work: () => Promise<void>): Promise<void> {
    const { id, state } = this.#record;
    const busy = new HibernautError(
      "failed_precondition",
      `Machine ${id} is busy, or not running. Try again in a moment.`,
    );
    const { live } = this.#guest;
    if (state !== "running" || live === undefined || this.#queue.busy) throw busy;
    const input = { machineId: id, agent: live.agent, work };
    const held = await this.#queue.replace(({ signal }) => whilePaused(input, this.#deps, signal), {
      reason: "a snapshot of a volume was requested",
    });
    if (!held) throw busy;
  }

  /**
   * Copies the machine while its guest is paused, and lets the guest run on. What is requested meanwhile ends the copy,
   * unless it is `patient`. Returns the record as of the copy, or undefined when the machine no longer runs, or something
   * else was requested.
   */
  async copyPaused(
    {
      patient,
      ...copy
    }: {
      withoutMemory: string | undefined;
      needsMemory: boolean;
      keeps: boolean;
      patient: boolean;
      target: CopyTarget;
    },
    signal: AbortSignal,
  ): Promise<(PausedCopy & { record: MachineRecord }) | undefined> {
    while (this.#queue.busy) await abortable(this.#queue.drained(), signal);
    const record = this.#record;
    if (this.#closed || record.state !== "running" || this.#guest.live === undefined) return undefined;
    let copied: PausedCopy | undefined;
    // A client waits for a fork, and nobody for a backup, except those whose requests wait for one that gives way no more.
    const input = { record, generation: newUlid(), hurried: copy.needsMemory || patient, ...copy };
    const work = async (task: Task) => {
      const limit = patient ? signal : AbortSignal.any([signal, task.signal]);
      copied = await copyPaused(input, this.#ports(), limit).catch((error: unknown) => {
        signal.throwIfAborted();
        const ended = this.#guest.lost || this.#guest.exit !== undefined || this.#record.state !== "running";
        if (task.signal.aborted || ended) return undefined;
        throw error;
      });
    };
    await this.#queue.replace(work, { reason: `it is copied for ${copy.target.purpose.name}` });
    return copied && { ...copied, record };
  }

  /** Resolves when no work is in progress or waits. Rejects with the signal's reason. */
  async drained(signal: AbortSignal): Promise<void> {
    while (this.#queue.length > 0) await abortable(this.#queue.drained(), signal);
  }

  /** Returns what the machine's VMM, or its kept one, takes of the host. Undefined without one. */
  async usage(): Promise<VmmUsage | undefined> {
    return (this.#guest.live ?? this.#guest.kept)?.vmm.usage();
  }

  /** Returns what its VMM, or its kept one, has had of the host's CPUs: see {@link Vmm.threadTimes}. Undefined without one. */
  async threadTimes(): Promise<ReadonlyMap<number, ThreadTimes> | undefined> {
    return (this.#guest.live ?? this.#guest.kept)?.vmm.threadTimes();
  }

  /** Returns how much of its guest's memory is in its VMM alone, in bytes: see {@link Vmm.ownMemory}. */
  async ownMemory(): Promise<number> {
    return (await this.#guest.live?.vmm.ownMemory()) ?? 0;
  }

  /** Lets other machines come before it at the CPUs: see {@link Vmm.comeLast}. Returns true without a VMM. */
  async comeLast(last: boolean): Promise<boolean> {
    return (await (this.#guest.live ?? this.#guest.kept)?.vmm.comeLast(last)) ?? true;
  }

  /** Returns what a snapshot of the running guest would be taken from. Undefined without one. */
  origin(): SnapshotOrigin | undefined {
    const { live } = this.#guest;
    return live && originOf(this.#record, this.#deps, live.vmm.identity);
  }

  /** Ends the kept VMM, unless the machine has been started meanwhile. Its snapshot stays as it is. */
  async evict(reason: string): Promise<void> {
    await this.#queue.add(async () => {
      if (this.#guest.kept === undefined) return;
      try {
        await this.#guest.kill();
      } finally {
        this.#keptOver(reason);
      }
    });
  }

  /** What ends a kept VMM because of a request is told by that request. */
  #keptOver(reason: string): void {
    const { tell } = this.#happened({ type: "kept_over", reason });
    if (tell.history !== undefined) this.machineLog.rest(); // the machine sleeps on
  }

  /** Stores something about the machine that leaves its state as it is. Throws when it cannot be stored. */
  readonly note = (event: Milestone | Note): void => {
    this.#happened(event);
  };

  /** Takes the machine out of the proxy's hands, or gives it back. */
  cordon(on: boolean): void {
    this.remark({ type: "cordon", on });
  }

  /**
   * The same for what a client says of the machine. Throws `aborted` while the machine is being moved, because its record has
   * been copied already, and `failed_precondition` once it is destroyed.
   */
  remark(note: Note): void {
    this.#departure?.refuse();
    const { id, state } = this.#record;
    if (state === "destroyed")
      throw new HibernautError("failed_precondition", `Machine ${id} is destroyed.`, { machine_id: id, state });
    this.#happened(note);
  }

  /**
   * Starts the machine if its schedule, or the wake that it planned, is due. Throws when that cannot be stored, and
   * `host_full` when there is no room for it.
   */
  timePassed(): void {
    this.#departure?.refuse();
    if (startIsDue(this.#record, this.#deps.clock?.() ?? new Date())) this.#requireRoom();
    this.#happened({ type: "schedule_due" });
    this.#happened({ type: "wake_due" });
  }

  /** Gives up the snapshot of a machine that rests. One that is being started finds out by itself. */
  dropSnapshot(reason: string): void {
    // What makes it useless is found out by the next start, wherever that is.
    if (this.#departure !== undefined) return;
    if (isResting(this.#record.state) && this.#record.snapshot !== null)
      this.command({ type: "discard_snapshot", reason });
  }

  /** Brings record and host together after a restart of the platform. `refs` are this machine's VMMs that are alive. */
  async recover(refs: readonly VmmRef[]): Promise<void> {
    const record = this.#record;
    const ports = this.#ports();
    const limit = within(never(), this.#deps.settings.bootTimeoutMs, "adopting the guest");
    const { found, vmm } = await observe({ record, refs }, ports, limit);
    const { effect } = this.#happened(found);
    if (effect?.type !== "take_over") return;
    const { reason } = effect;
    if (reason !== "")
      this.#deps.log.info({ machine: record.id, state: record.state, found, plan: effect }, `recovery: ${reason}`);
    this.#happened(await takeOver({ record, effect, vmm }, ports, limit));
  }

  /** Stores what the cluster says of the machine. Its guest stays as it is. */
  restate(change: (record: MachineRecord) => MachineRecord): void {
    this.#keeper.restate(change);
  }

  /** Lets go of the guest, which keeps running, once what is in progress is done. */
  async close(): Promise<void> {
    this.#closed = true;
    // The next platform waits for the rest of the time.
    if (this.#record.state === "restarting") this.#queue.abandon("the platform is shutting down");
    await this.#queue.drained();
    this.inside.streams.reset("the platform is shutting down");
    // Nobody would know of it; the next platform would end it.
    if (this.#guest.kept !== undefined) await unlessHeld(this.#guest.kill(), this.#deps.log);
    this.#guest.release();
    await this.machineLog.close();
  }

  /** Ends the VMM as if it had vanished: the restart policy decides what follows. */
  async cutPower(): Promise<void> {
    await (this.#guest.live ?? this.#guest.kept)?.vmm.kill();
  }

  /** The machine is not this host's any more: ends its guest at once, whatever is in progress, and does nothing more. */
  async abandon(reason: string): Promise<void> {
    this.#closed = true;
    this.#queue.abandon(reason);
    await this.#guest.kill();
    await this.#queue.drained();
    // A start that was under way may have got one in the meantime.
    await this.#guest.kill();
    this.inside.streams.reset(reason);
    await this.machineLog.close();
  }

  /** Decides, stores, begins, tells: in this order. Throws when the new record cannot be stored; nothing has happened then. */
  #happened(event: LifecycleEvent): Decision {
    const decision = this.#keeper.take(event);
    const { effect, tell } = decision;
    if (tell.memoryGone) this.inside.streams.forget("the machine ended");
    if (effect !== null && effect.type !== "take_over") this.#begin(effect);
    if (tell.followers) this.#keeper.announce();
    if (tell.history !== undefined) this.#noticeEnd();
    return decision;
  }

  #begin(effect: Effect): void {
    if (effect.type === "cancel_capture") return this.#queue.cancel("a start was requested");
    if (effect.type === "discard_snapshots") {
      const given = { machineId: this.#record.id, memory: effect.memory, guest: this.#guest };
      return background(
        this.#queue.add(() => discardGivenUp(given, this.#deps)),
        "discarding a snapshot",
      );
    }
    // A platform that is shutting down leaves the wait to the next one.
    if (effect.type === "back_off" && this.#closed) return;
    if (effect.type === "halt") this.#keeper.stopTerms = effect.terms ?? {};
    const patient = effect.type === "apply_update" && effect.patient;
    const reason = `${effect.type.replace("_", " ")} was requested`;
    background(
      this.#queue.replace((task) => this.#carryOut(effect, task), { reason, patient }),
      "the work of a machine",
    );
  }

  async #carryOut(effect: EffectWithOutcome, task: Task): Promise<void> {
    const input = { record: this.#record, effect };
    const ports = this.#ports();
    const outcome = await runEffect(input, ports, task.signal).catch((error: unknown): EffectFailed => {
      const { id: machine } = this.#record;
      if (task.current) this.#deps.log.error({ machine, err: error }, `${effect.type} failed unexpectedly`);
      return { type: "effect_failed", effect: effect.type, reason: messageOf(error) };
    });
    // Another machine's restart found the same room at the same time: this one keeps waiting.
    const lateForRoom = outcome.type === "retry" && task.current && !this.#deps.admission.fits(this.#record);
    if (lateForRoom) return this.#carryOut(effect, task);
    const { current } = task;
    const ended = performance.now();
    await this.#report(outcome, task);
    const operation = operationOf({ ...input, outcome, current, steps: ports.steps, ended });
    if (operation !== undefined) this.#deps.watch?.operation(operation);
  }

  #report(outcome: EffectOutcome | EffectFailed, task?: Task): Promise<void> {
    return this.#keeper.persist(outcome, {
      superseded: () => task !== undefined && !task.current,
      happened: (event) => this.#happened(event),
      closed: () => this.#closed,
    });
  }

  /**
   * The app, or the whole guest, has ended by itself. Effects see the end of the guests that they work on; an end that
   * they could not see is noticed as soon as the machine is `running`.
   */
  #noticeEnd(): void {
    if (this.#record.state !== "running") return;
    const { exit, lost, failure } = this.#guest;
    if (exit !== undefined) return background(this.#report({ type: "app_ended", exit }), "noting the end of a guest");
    if (!lost) return;
    this.#guest.forget();
    background(
      this.#report({ type: "lost", reason: failure ?? "the virtual machine ended" }),
      "noting the end of a guest",
    );
  }

  #stalled(why: string | undefined): void {
    this.#deps.log.warn({ machine: this.#record.id, reason: why ?? "it is running again" }, "the host paused a guest");
    this.#happened({ type: "stalled", why: why ?? null });
  }

  #ports(): EffectPorts {
    const { inside, machineLog, note } = this;
    const network = withRulesOfNow(this.#deps.network, () => this.#record);
    return { ...this.#deps, network, guest: this.#guest, inside, machineLog, note, steps: new Steps() };
  }
}
