/** The controllers of all machines: lookup, creation, recovery and shutdown. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { findNamed } from "@hibernaut/domain/naming";
import { Admission } from "./admission/admission.ts";
import { HostMemory } from "./admission/host-memory.ts";
import { QEMU_OVERHEAD } from "./admission/rules.ts";
import { AppDeletions } from "./app-deletions.ts";
import { MachineChanges } from "./changes.ts";
import { MachineController } from "./controller.ts";
import { HostCpu } from "./cpu/host-cpu.ts";
import { CpuTurns } from "./cpu/turns.ts";
import type { MachineDependencies } from "./dependencies.ts";
import { unlessHeld } from "./effects/recover.ts";
import { sentenceOf } from "./logs/sentences.ts";
import { requireApp } from "./require-app.ts";
import { settleOwnership } from "./settle-ownership.ts";
import { type Waited, type WaitOptions, type WaitTarget, waitFor } from "./waiting.ts";
import { WarmHistory } from "./warm/history.ts";
import { WarmKeeper } from "./warm/keeper.ts";
import { MemoryPressure } from "./warm/pressure.ts";

/** Recovery talks to guests: up to this many at a time, so that a small host is not overwhelmed. */
const RECOVER_AT_ONCE = 8;

/** One controller per machine that is not destroyed. Call {@link recover} once, before anything else. */
export class ControllerSet {
  readonly #deps: MachineDependencies;
  /** The paused VMMs of suspended machines. */
  readonly warm: WarmKeeper;
  readonly warmHistory: WarmHistory;
  /** Which starts the host has room for. */
  readonly admission: Admission;
  /** Which machines come last when the CPUs are busy. */
  readonly turns: CpuTurns;
  /** Apps that get no more machines. */
  readonly deletions = new AppDeletions();
  readonly #controllers = new Map<string, MachineController>();
  #closed = false;
  /** Where every change of a machine is told. */
  readonly changes = new MachineChanges();

  constructor(deps: MachineDependencies) {
    this.#deps = deps;
    this.warmHistory = new WarmHistory(deps.store.timeline, deps.log);
    this.warm = new WarmKeeper({
      budgetBytes: deps.settings.keepWarmMemoryMb * 1024 * 1024,
      pressure: deps.memoryPressure ?? new MemoryPressure(),
      evict: async (id, reason) => this.#controllers.get(id)?.evict(reason),
      ended: (kept) => this.warmHistory.add(kept),
      log: deps.log,
      now: () => (deps.clock?.() ?? new Date()).getTime(),
    });
    this.admission = new Admission({
      memory: deps.hostMemory ?? new HostMemory(),
      settings: deps.settings,
      overhead: QEMU_OVERHEAD[deps.hypervisor.identity().accelerator],
      warm: this.warm,
      ownMemory: async (id) => (await this.#controllers.get(id)?.ownMemory()) ?? 0,
      log: deps.log,
    });
    this.turns = new CpuTurns({
      host: deps.hostCpu ?? new HostCpu(),
      threadTimes: async (id) => this.#controllers.get(id)?.threadTimes(),
      comeLast: async (id, last) => (await this.#controllers.get(id)?.comeLast(last)) ?? true,
    });
  }

  /** Reconciles every stored machine with what is found on the host, and ends guests that belong to no machine. */
  async recover(): Promise<void> {
    const { hypervisor, store } = this.#deps;
    await settleOwnership(this.#deps);
    const refs = await hypervisor.find();
    const records = store.machines.list();
    const known = new Set(records.map((record) => record.id));
    for (const stray of refs.filter((ref) => !known.has(ref.machineId)))
      await unlessHeld(hypervisor.end(stray), this.#deps.log);
    const queue = records.map((record) => this.#control(record));
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const { id } = next.record;
        await next.recover(refs.filter((ref) => ref.machineId === id));
      }
    };
    await Promise.all(Array.from({ length: RECOVER_AT_ONCE }, worker));
  }

  /** Finishes the work in progress and disconnects from the guests, which keep running. */
  async close(): Promise<void> {
    this.#closed = true;
    this.warm.shut("shutdown");
    this.admission.close();
    this.turns.close();
    await Promise.all([...this.#controllers.values()].map((controller) => controller.close()));
    this.warmHistory.write();
  }

  /** Takes charge of a machine that was just stored, and announces it. */
  add(record: MachineRecord): MachineController {
    // It was claimed while the platform ended. The next one finds it, and nothing starts here any more.
    if (this.#closed)
      throw new HibernautError("unavailable", `The platform is shutting down. Machine ${record.id} is not started.`);
    const controller = this.#control(record);
    controller.machineLog.platform(
      sentenceOf({ at: record.createdAt, type: "create", from: null, to: "created", details: {} }),
    );
    this.changes.publish(record);
    return controller;
  }

  /** Forgets a machine that is not this host's any more; `record` is what followers are told. */
  drop(record: MachineRecord): void {
    this.#controllers.delete(record.id);
    this.admission.follow(record);
    this.turns.follow({ ...record, state: "destroyed" });
    this.changes.publish(record);
  }

  /** Returns the machines of all apps, oldest first. */
  all(): MachineController[] {
    return [...this.#controllers.values()];
  }

  /** Returns the machines of an app, oldest first, without those that wait in pools. */
  of(app: string): MachineController[] {
    return [...this.#controllers.values()].filter(({ record }) => record.app === app && record.pooled !== true);
  }

  /** Returns the machines of an app, oldest first, also those that wait in pools. */
  everyOf(app: string): MachineController[] {
    return [...this.#controllers.values()].filter(({ record }) => record.app === app);
  }

  /** Returns the machine with exactly this id, or undefined if there is none or it is destroyed. */
  get(id: string): MachineController | undefined {
    return this.#controllers.get(id);
  }

  /** Returns the machine with exactly this id. Throws `not_found` once it is destroyed. */
  require(id: string): MachineController {
    const controller = this.#controllers.get(id);
    if (controller === undefined) throw new HibernautError("not_found", `Machine ${id} no longer exists.`);
    return controller;
  }

  /**
   * Returns the machine of the app that `word` refers to: by id, by name, or by the beginning of its id. A destroyed
   * machine is found by its whole id only, and one in a pool not at all. Throws `not_found`, or `invalid_argument` when several machines match.
   */
  find(app: string, word: string): MachineController {
    requireApp(this.#deps.store.apps, app);
    const exact = this.#controllers.get(word);
    if (exact?.record.app === app && exact.record.pooled !== true) return exact;
    const records = this.of(app).map(({ record }) => record);
    const found = findNamed(word, records, { noun: "machine" });
    const controller = found === undefined ? this.#destroyed(word) : this.#controllers.get(found.id);
    if (controller?.record.app === app && controller.record.pooled !== true) return controller;
    throw new HibernautError(
      "not_found",
      `App ${app} has no machine ${word.slice(0, 80)}. See \`hibernaut machine list --app ${app}\`.`,
      { app_name: app, machine_id: word },
    );
  }

  /** Settles when a machine has reached one of the states: see {@link waitFor}. */
  wait(controller: MachineController, targets: readonly WaitTarget[], options: WaitOptions): Promise<Waited> {
    return waitFor(controller, { ...this.#deps, changes: this.changes }, targets, options);
  }

  #control(record: MachineRecord): MachineController {
    const controller = new MachineController(this.#controllerDeps(), record);
    this.#controllers.set(record.id, controller);
    this.admission.follow(record);
    this.turns.follow(record);
    controller.subscribe((changed) => {
      this.admission.follow(changed);
      this.turns.follow(changed);
      if (changed.state === "destroyed") {
        this.#controllers.delete(changed.id);
        this.#deps.ownership?.release(changed);
      } else this.#deps.ownership?.publish(changed);
      this.changes.publish(changed);
    });
    return controller;
  }

  #destroyed(id: string): MachineController | undefined {
    const record = this.#deps.store.machines.get(id);
    return record && new MachineController(this.#controllerDeps(), record);
  }

  #controllerDeps() {
    return { ...this.#deps, warm: this.warm, admission: this.admission };
  }
}
