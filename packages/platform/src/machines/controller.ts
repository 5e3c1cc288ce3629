/**
 * One machine: its stored record, its guest, and one thing at a time. Commands are decided and
 * stored at once, synchronously; the work that follows runs in a queue of its own.
 */
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError } from "../domain/errors.ts";
import { GuestAgent } from "../guest/agent.ts";
import type { GuestExit } from "../guest/protocol.ts";
import type { GuestCommand } from "../guest/command.ts";
import type { CommandSpec } from "../guest/protocol.ts";
import { type Vmm, VmmKilled, type VmmRef } from "../hypervisor/contract.ts";
import { capital, messageOf } from "../lib/text.ts";
import type { MachineDependencies } from "./dependencies.ts";
import { backOff } from "./effects/back-off.ts";
import { boot } from "./effects/boot.ts";
import { capture } from "./effects/capture.ts";
import { type EffectContext, type EffectResult, type LiveGuest, within } from "./effects/context.ts";
import { applyUpdate, halt, remove } from "./effects/halt.ts";
import { standStill } from "./effects/still.ts";
import { newUlid } from "./identity.ts";
import { Inside } from "./inside.ts";
import {
  type Command,
  type Effect,
  type LifecycleEvent,
  type Outcome,
  type Transition,
  transition,
} from "./lifecycle.ts";
import type { LogStream } from "./logs/entry.ts";
import { MachineLog } from "./logs/machine-log.ts";
import { sentenceOf } from "./logs/sentences.ts";
import { servicePorts } from "../domain/config.ts";
import { Reachability } from "./reachability.ts";
import { observe, takeOver } from "./recover.ts";
import { planRecovery } from "./recovery.ts";
import { afterEnd, describeExit } from "./restart.ts";
import {
  isResting,
  type KeepAwake,
  type MachineEvent,
  type MachineRecord,
  type PendingUpdate,
} from "../domain/machine.ts";

const EFFECTS: Record<Exclude<Effect, "cancel_capture">, (context: EffectContext) => Promise<EffectResult>> = {
  boot,
  back_off: backOff,
  capture,
  halt,
  apply_update: applyUpdate,
  remove,
};
/** What an effect reports that failed in a way it did not foresee. */
const FAILED_OUTCOME: Record<keyof typeof EFFECTS, Outcome> = {
  boot: "start_failed",
  back_off: "retry",
  capture: "lost",
  halt: "halt_failed",
  apply_update: "update_failed",
  remove: "remove_failed",
};

/** Streams of the agent's log frames. */
const APP_STREAMS: Readonly<Record<number, Exclude<LogStream, "platform">>> = { 1: "stdout", 2: "stderr" };

const STORE_RETRY_MS = 100;
const STORE_RETRY_LONGEST_MS = 5_000;

interface Task {
  abort: AbortController;
  done: Promise<void>;
}

export type ChangeListener = (record: MachineRecord) => void;

/** What belongs to a command. */
export interface CommandOptions {
  force?: boolean;
  pending?: PendingUpdate;
  details?: Record<string, unknown>;
  /** A request at the proxy asked, nobody who looks after the machine: its restarts go on counting. */
  unattended?: boolean;
  /** May refuse after the table agreed to a move. */
  check?(): void;
}

export class MachineController {
  readonly #deps: MachineDependencies;
  readonly #listeners = new Set<ChangeListener>();
  #record: MachineRecord;
  #task: Task | undefined;
  #live: LiveGuest | undefined;
  #restedSince: string | undefined;
  #exit = Promise.withResolvers<GuestExit>();
  #exitValue: GuestExit | undefined;
  #closed = false;
  /** What its programs are told and say. */
  readonly inside = new Inside();
  /** What its app prints, and what becomes of it. */
  readonly machineLog: MachineLog;

  constructor(deps: MachineDependencies, record: MachineRecord) {
    this.#deps = deps;
    this.#record = record;
    this.machineLog = new MachineLog({
      machine: record.id,
      folder: deps.files.paths(record.id).logs,
      maxBytes: deps.settings.logMaxMb * 1024 * 1024,
      prepare: () => deps.files.prepare(record.id),
      ended: record.state === "destroyed",
    });
    this.inside.streams.onConnection = (connection) => {
      if (deps.onLocalConnection === undefined) connection.destroy();
      else deps.onLocalConnection(record.id, connection);
    };
  }

  get record(): MachineRecord {
    return this.#record;
  }

  /** Calls `listener` after every stored transition; returns how to stop that. */
  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Decides, stores and begins. Throws what the lifecycle refuses; returns as soon as the intent
   * is stored. `check` may refuse after the table agreed to a move.
   */
  command(command: Command, options: CommandOptions = {}): void {
    const { state, id } = this.#record;
    const answer = transition(state, command, { goal: this.#record.goal, force: options.force });
    if (answer.kind === "refuse") {
      throw new HibernautError(answer.code, `Machine ${id} is ${state}: ${answer.reason}.`, { machine_id: id, state });
    }
    if (answer.kind === "move") options.check?.();
    const patch: Partial<MachineRecord> = {};
    if (command !== "suspend") patch.crash = null;
    // Someone takes care of the machine: what it failed at before does not count any more.
    if (command !== "suspend" && options.unattended !== true) patch.restarts = 0;
    if (command === "update" && options.pending !== undefined) patch.pending = options.pending;
    const crashed = (this.#record.crash ?? null) !== null;
    this.#apply(command, answer, patch, options.details ?? {});
    // It is on its way already, and from now on at somebody's wish.
    if (crashed && (this.#record.crash ?? null) !== null && command !== "suspend") {
      this.#patch(patch);
      this.#tell();
    }
  }

  /**
   * Runs a command in the guest. Throws `failed_precondition` unless the machine runs, with a guest bundle that knows
   * how, and `invalid_argument` when the command is too long.
   */
  run(spec: CommandSpec): GuestCommand {
    const { id, state } = this.#record;
    if (state !== "running" || this.#live === undefined)
      throw new HibernautError(
        "failed_precondition",
        state === "starting" || state === "restarting" || state === "updating"
          ? `Machine ${id} is ${state}. Wait until it runs (\`hibernaut machine wait ${id}\`), then run the command.`
          : `Machine ${id} is ${state}. Start it, then run the command.`,
        { machine_id: id, state },
      );
    if (!this.#live.agent.hasStreams)
      throw new HibernautError(
        "failed_precondition",
        `Machine ${id} runs an older guest bundle that cannot run commands. Run \`hibernaut machine update ${id} --yes\`.`,
      );
    try {
      return this.inside.streams.run(spec);
    } catch (error) {
      if (error instanceof RangeError) throw new HibernautError("invalid_argument", `${capital(error.message)}.`);
      throw error;
    }
  }

  /**
   * Has the guest stand still, its disks flushed, while `work` goes on. `failed_precondition` unless the machine runs
   * and nothing is under way. What is asked for meanwhile waits for it.
   */
  async holdStill(work: () => Promise<void>): Promise<void> {
    const { id, state } = this.#record;
    if (state !== "running" || this.#live === undefined || this.#task !== undefined)
      throw new HibernautError("failed_precondition", `Machine ${id} is busy, or not running. Try again in a moment.`);
    const { promise, resolve } = Promise.withResolvers<void>();
    const task: Task = { abort: new AbortController(), done: promise };
    this.#task = task;
    try {
      await standStill(this.#context(task.abort.signal), this.#live.agent, work);
    } finally {
      if (this.#task === task) this.#task = undefined;
      resolve();
    }
  }

  /** Stores, or with null ends, the app's wish not to be put to sleep. */
  keepAwake(lease: KeepAwake | null): void {
    this.#patch({ keepAwake: lease });
    this.#tell();
  }

  /** Settles when nothing is under way. */
  async settled(): Promise<void> {
    for (let task = this.#task; task !== undefined; task = this.#task === task ? undefined : this.#task)
      await task.done;
  }

  /** Brings record and host together after a restart of the platform. `refs` are this machine's VMMs that are alive. */
  async recover(refs: VmmRef[]): Promise<void> {
    const limit = within(new AbortController().signal, this.#deps.settings.bootTimeoutMs, "adopting the guest");
    const { vmm, observed } = await observe(this.#deps, this.#record, refs, limit);
    const plan = planRecovery(this.#record, observed);
    if (plan.reason !== "")
      this.#deps.log.info({ machine: this.#record.id, state: this.#record.state, plan }, `recovery: ${plan.reason}`);
    if (plan.vmm === "kill") await vmm?.kill();
    let next = plan.next;
    if (vmm !== undefined && (plan.vmm === "adopt" || plan.vmm === "wake")) {
      const live = await this.#attach(vmm);
      const exit = await takeOver(live, plan, next, limit).catch(async (error: unknown) => {
        this.#deps.log.warn({ machine: this.#record.id, reason: messageOf(error) }, "a guest could not be adopted");
        await this.#kill();
        if (next.kind !== "effect") next = { kind: "outcome", outcome: "lost" };
        return undefined;
      });
      if (exit !== undefined) this.#rememberExit(exit);
      if (this.#live !== undefined) this.machineLog.platform("The platform was restarted and has found the guest.");
    }
    if (this.#record.state !== "destroyed")
      await this.#deps.snapshots.discardOthers(this.#record.id, plan.keep ?? undefined);
    const captured = next.kind === "outcome" && next.outcome === "captured" && plan.keep !== null;
    const found = captured ? await this.#deps.snapshots.describe(this.#record.id, plan.keep ?? "") : undefined;
    const snapshot = found && { ...found, secrets: this.#deps.secrets.version(this.#record.app) };
    if (next.kind === "effect") this.#launch(next.effect as keyof typeof EFFECTS);
    if (next.kind === "outcome") {
      const patch = { capturing: null, ...(snapshot && { snapshot, coldReason: "" }) };
      this.#finish({ outcome: next.outcome, patch, details: { reason: plan.reason } });
    }
    if (next.kind === "rest" && this.#exitValue !== undefined) this.#appEnded(this.#exitValue);
  }

  /** Lets go of the guest, which runs on, once what is under way is done. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#record.state === "restarting") this.#forgetTask();
    await this.settled();
    this.inside.streams.reset("the platform is shutting down");
    this.#live?.agent.close();
    this.#live?.vmm.release();
    await this.machineLog.close();
  }

  #apply(
    event: LifecycleEvent,
    answer: Exclude<Transition, { kind: "refuse" }>,
    patch: Partial<MachineRecord>,
    details: Record<string, unknown>,
  ): void {
    const at = new Date().toISOString();
    const { state: from, updatedAt: restedSince } = this.#record;
    const to = answer.kind === "move" ? answer.to : from;
    const changes = { ...patch, goal: answer.goal };
    if (to === "suspending" && from !== "suspending") changes.capturing = newUlid();
    if (answer.kind === "move" || answer.goal !== this.#record.goal) {
      const entry: MachineEvent = { at, type: event, from, to, details };
      const next = { ...this.#record, ...changes, state: to, updatedAt: at };
      this.#deps.store.machines.update(next, entry);
      this.#record = next;
      this.#deps.log.info(
        { machine: this.#record.id, app: this.#record.app, event, from, to, ...details },
        `${from} -> ${to}`,
      );
      // Its folder is gone, and whoever followed has been told that it was being destroyed.
      if (to !== "destroyed") this.machineLog.platform(sentenceOf(entry));
    }
    if (answer.effect === "boot" && isResting(from) && from !== "running" && from !== "created")
      this.#restedSince = restedSince;
    // Nothing is left that the guest's ends of the streams could go on in.
    if (this.#live === undefined && this.#record.snapshot === null) this.inside.streams.reset("the machine ended");
    if (answer.effect === "cancel_capture") this.#task?.abort.abort(new Error("a start was asked for"));
    else if (answer.effect !== undefined) this.#launch(answer.effect, { patient: from === "stopping" });
    if (from !== to) this.#tell();
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener(this.#record);
  }

  /** Ends what is under way without a word about its outcome: the next platform begins it again. */
  #forgetTask(): void {
    const task = this.#task;
    this.#task = undefined;
    task?.abort.abort(new Error("the platform is shutting down"));
  }

  /**
   * Queues an effect behind the one under way, which is told to end. An update is `patient` with a stop: the app keeps
   * the time that it was given, and its volumes are unmounted.
   */
  #launch(effect: keyof typeof EFFECTS, { patient = false } = {}): void {
    // A platform that is shutting down leaves the wait to the next one.
    if (effect === "back_off" && this.#closed) return;
    const previous = this.#task;
    if (!(patient && effect === "apply_update"))
      previous?.abort.abort(new Error(`${effect.replace("_", " ")} was asked for`));
    const task: Task = { abort: new AbortController(), done: Promise.resolve() };
    this.#task = task;
    task.done = this.#run(task, effect, previous?.done);
  }

  async #run(task: Task, effect: keyof typeof EFFECTS, before: Promise<void> | undefined): Promise<void> {
    await before;
    if (this.#task !== task) return;
    const result = await EFFECTS[effect](this.#context(task.abort.signal)).catch((error: unknown): EffectResult => {
      this.#deps.log.error({ machine: this.#record.id, err: error }, `${effect} failed unexpectedly`);
      const stateReason = messageOf(error);
      return { outcome: FAILED_OUTCOME[effect], patch: { stateReason }, details: { reason: stateReason } };
    });
    if (this.#task === task) await this.#report(result);
    else if (result.patch !== undefined) this.#patchSnapshotOnly(result);
    await result.after?.().catch((error: unknown) => {
      this.#deps.log.warn({ machine: this.#record.id, reason: messageOf(error) }, `cleaning up after ${effect} failed`);
    });
    if (this.#task === task) this.#task = undefined;
  }

  /** A superseded effect decides nothing any more, but whether there is a snapshot remains a fact. */
  #patchSnapshotOnly({ patch }: EffectResult): void {
    if (patch?.snapshot !== undefined) this.#patch({ snapshot: patch.snapshot, capturing: null });
  }

  /**
   * Stores an outcome. A store that cannot be written (a full disk) must not leave the machine in a
   * passing state for ever: it is tried again until it works or the platform ends, and recovery goes on from there.
   */
  async #report(result: EffectResult): Promise<void> {
    for (let wait = STORE_RETRY_MS; ; wait = Math.min(wait * 2, STORE_RETRY_LONGEST_MS)) {
      try {
        return this.#finish(result);
      } catch (error) {
        this.#deps.log.error(
          { machine: this.#record.id, outcome: result.outcome, err: error },
          "an outcome cannot be stored; trying again",
        );
        if (this.#closed) return;
        await delay(wait, undefined, { ref: false });
      }
    }
  }

  #finish(result: EffectResult): void {
    let { outcome, patch = {}, details = {} } = result;
    const { state, goal, pending } = this.#record;
    if (outcome === "app_ended" || outcome === "lost") {
      const exit = outcome === "lost" ? undefined : this.#exitValue;
      const reason =
        this.#exitValue === undefined
          ? String(result.details?.reason ?? "the virtual machine ended")
          : describeExit(this.#exitValue);
      // An app that ended before it was ready brings the boot that it ended in.
      const { restarts, crash } = afterEnd({ ...this.#record, ...patch }, { exit, reason, at: new Date() });
      patch = { ...patch, stateReason: reason, restarts, crash, ...(outcome === "lost" && { coldReason: "vmm_lost" }) };
      if (this.#exitValue !== undefined) details = { ...this.#exitValue, reason, ...details };
      if (crash !== null && crash.retry_at !== null) {
        outcome = outcome === "lost" ? "lost_restarts" : "app_restarts";
        details = { ...details, attempt: crash.attempt, max_attempts: crash.max_attempts };
      }
    }
    const answer = transition(state, outcome, { goal, from: pending?.from });
    if (answer.kind === "refuse") {
      this.#deps.log.warn({ machine: this.#record.id, state, outcome }, "an outcome came too late");
      return;
    }
    this.#apply(outcome, answer, patch, details);
    // An app that ended while its machine was passing into `running` is noticed now.
    if (this.#record.state === "running" && this.#exitValue !== undefined) this.#appEnded(this.#exitValue);
  }

  #context(signal: AbortSignal): EffectContext {
    const self = this;
    return {
      deps: this.#deps,
      signal,
      get record() {
        return self.#record;
      },
      patch: (changes) => this.#patch(changes),
      clearReason: (reason) => this.#clearReason(reason),
      get live() {
        return self.#live;
      },
      inside: this.inside,
      machineLog: this.machineLog,
      get restedSince() {
        return self.#restedSince;
      },
      attach: (vmm) => this.#attach(vmm),
      kill: () => this.#kill(),
      get exit() {
        return self.#exitValue;
      },
      ended: (exit) => self.#rememberExit(exit),
      exited: () => self.#exit.promise,
    };
  }

  #patch(changes: Partial<MachineRecord>): void {
    const next = { ...this.#record, ...changes };
    this.#deps.store.machines.update(next);
    this.#record = next;
  }

  /** The app listens elsewhere than its services say, or again where they do. While it starts, that tells it. */
  #reached(agent: GuestAgent, why: string | undefined): void {
    if (this.#live?.agent !== agent || this.#record.state !== "running") return;
    const { stateReason, unreachable = null } = this.#record;
    if (why === undefined && unreachable === null) return;
    const reason = why ?? (stateReason === unreachable ? null : stateReason);
    this.#note({ stateReason: reason, unreachable: why ?? null });
    this.#tell();
  }

  #clearReason(reason: string): void {
    if (this.#record.stateReason === reason) this.#note({ stateReason: null });
  }

  /** What is only for people to read is told even if it cannot be stored: a full disk may be what there is to tell. */
  #note(changes: Pick<MachineRecord, "stateReason" | "unreachable">): void {
    this.#record = { ...this.#record, ...changes };
    try {
      this.#patch(changes);
    } catch (error) {
      this.#deps.log.warn(
        { machine: this.#record.id, reason: messageOf(error), ...changes },
        "a reason cannot be stored",
      );
    }
  }

  #stalled(vmm: Vmm, reason: string | undefined): void {
    if (this.#live?.vmm !== vmm) return;
    this.#deps.log.warn({ machine: this.#record.id, reason: reason ?? "it goes on" }, "a guest stood still");
    this.machineLog.platform(reason === undefined ? "The guest goes on." : `The guest stands still: ${reason}.`);
    this.#note({ stateReason: reason ?? null });
  }

  async #attach(vmm: Vmm): Promise<LiveGuest> {
    this.#exit = Promise.withResolvers();
    this.#exitValue = undefined;
    const { log, settings } = this.#deps;
    const id = this.#record.id;
    try {
      const agent = new GuestAgent(
        await vmm.openChannel(within(new AbortController().signal, settings.bootTimeoutMs, "reaching the agent")),
        this.inside.streams,
      );
      agent.onLog = (stream, data) => this.#output(stream, data);
      agent.onPrinted = (bytes) => this.machineLog.printed(bytes);
      agent.onError = (message) => log.warn({ machine: id, message }, "the agent refused something");
      agent.onExit = (exit) => this.#appEnded(exit);
      const { config, state, unreachable } = this.#record;
      const before = state === "running" ? (unreachable ?? undefined) : undefined;
      const reachability = new Reachability(servicePorts(config), (why) => this.#reached(agent, why), before);
      agent.onListening = (listeners) => reachability.listening(listeners);
      void agent.ready(new AbortController().signal).then(
        () => reachability.ready(),
        () => reachability.close(), // the guest ended first
      );
      this.#live = { vmm, agent, reachability };
    } catch (error) {
      const gone = await vmm.state().then(
        () => false,
        () => true,
      );
      await vmm.kill();
      throw gone ? new VmmKilled(messageOf(error)) : error;
    }
    vmm.onStalled = (reason) => this.#stalled(vmm, reason);
    void vmm.exited.then(() => this.#vmmEnded(vmm));
    return this.#live;
  }

  #output(number: number, data: Buffer): void {
    const stream = APP_STREAMS[number];
    if (stream !== undefined) this.machineLog.output(stream, data);
  }

  async #kill(): Promise<void> {
    const live = this.#live;
    this.#live = undefined;
    await live?.vmm.kill();
    live?.agent.close();
    this.machineLog.rest();
  }

  #rememberExit(exit: GuestExit): void {
    this.machineLog.flush(); // its last words, before what is said of its end
    this.#exitValue = exit;
    this.#exit.resolve(exit);
  }

  #appEnded(exit: GuestExit): void {
    this.#rememberExit(exit);
    if (this.#record.state === "running") void this.#report({ outcome: "app_ended" });
  }

  /** Only a machine at rest notices here; effects see the end of the guests that they handle. */
  #vmmEnded(vmm: Vmm): void {
    if (this.#live?.vmm !== vmm) return;
    this.#live.agent.close();
    if (this.#record.state !== "running") return;
    this.#live = undefined;
    void this.#report({ outcome: "lost", details: { reason: "the virtual machine ended" } });
  }
}
