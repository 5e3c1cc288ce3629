/**
 * Pools of templates: machines that were born already, have become themselves, and sleep until someone asks for a machine of
 * the template. Taking one is a change of its record, and its start an ordinary wake. Nobody else sees them.
 */
import { withEgress } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import { isResting, type MachineRecord } from "@hibernaut/domain/machine";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import { networkMachine } from "@hibernaut/network";
import type { MachineController } from "../controller.ts";
import { keepWarmMs } from "../warm/rules.ts";
import type { Births } from "./bear.ts";
import { bearFrom, requireSameSecrets, type TemplateBirths } from "./from-template.ts";
import { chooseNext, membersOf } from "./pool-rules.ts";

/** For each of the steps that put a machine into a pool: about as long as a start on a slow host may take. */
const STEP_TIMEOUT_MS = 120_000;
/** How long a machine may take to pass its checks before it sleeps: its app runs already, so that is plenty. */
const CHECKS_MS = 30_000;
/** How long the wake of a machine that was taken comes first: longer than most take. */
const WAKE_MS = 1000;
/** After a failure, and twice as long after each further one: a machine that does not get ready costs a copy each time. */
const RETRY_MS = 30_000;
const LONGEST_RETRY_MS = 3_600_000;
/** For how long one that was taken, and not started, stays in memory at least. */
const TAKEN_WARM_MS = 60_000;

/** How full the pool of a template is. */
export interface PoolView {
  size: number;
  /** How many machines wait to be taken. */
  ready: number;
  /** How many of them are kept in memory, too. */
  warm: number;
  /** Why it is not full. Null while it is, or is being filled. */
  reason: string | null;
}

/** What is chosen for a machine that is taken. */
type ChosenOfPool = Pick<Births, "name" | "cordoned" | "egress" | "sandbox" | "lease">;

/** Fills the pools of all templates, one machine at a time, so that it disturbs no other work. */
export class Pools {
  readonly #births: TemplateBirths;
  /** Templates that are looked at next, in this order. */
  readonly #due = new Set<string>();
  /** Why the pool of a template is not full. */
  readonly #faults = new Map<string, string>();
  /** Machines that were let sleep by this platform, which kept as many of them warm as there was memory for. */
  readonly #settled = new Set<string>();
  readonly #retries = new Map<string, NodeJS.Timeout>();
  /** How often in a row the pool of a template could not be filled. */
  readonly #failures = new Map<string, number>();
  readonly #closing = new AbortController();
  #work: Promise<void> | undefined;
  /** The machine that is being put into its pool: it cannot be taken. */
  #making: string | undefined;
  /** Machines that are about to be taken. */
  readonly #reserved = new Set<string>();
  #unsubscribe: (() => void) | undefined;
  #unsubscribeFromDrain: (() => void) | undefined;

  constructor(births: TemplateBirths) {
    this.#births = births;
  }

  /** Begins, with what an earlier platform left. Call it once machines are recovered. */
  start(): void {
    const { controllers, drain } = this.#births;
    this.#unsubscribe = controllers.changes.subscribe("waiting", (record) => {
      const { id, pooled, state, snapshot, origin } = record;
      if (state === "destroyed") this.#settled.delete(id);
      // It lost its memory to a change of secrets, for example.
      const ended = isResting(state) && (state !== "suspended" || snapshot === null);
      if (pooled === true && (ended || state === "destroyed") && id !== this.#making) this.look(origin?.template ?? "");
    });
    this.#unsubscribeFromDrain = drain.subscribe((draining) => {
      if (draining) return;
      // Their virtual machines have ended meanwhile, and nothing was filled.
      this.#settled.clear();
      this.#lookAtAll();
    });
    this.#lookAtAll();
  }

  #lookAtAll(): void {
    const { controllers, deps } = this.#births;
    this.#failures.clear();
    for (const { id, warmPool } of deps.store.templates.list()) if (warmPool > 0) this.look(id);
    for (const { record } of controllers.all()) if (record.pooled === true) this.look(record.origin?.template ?? "");
  }

  /** Brings the pool of a template to its size, in the background. */
  look(template: string): void {
    if (this.#closing.signal.aborted) return;
    clearTimeout(this.#retries.get(template));
    this.#retries.delete(template);
    this.#due.add(template);
    if (this.#work !== undefined) return;
    this.#work = this.#fill().finally(() => {
      this.#work = undefined;
      const next = first(this.#due);
      if (next !== undefined) this.look(next);
    });
    background(this.#work, "filling the pools of templates");
  }

  /**
   * Gives a machine out of the pool to someone, at once and to nobody else. Undefined when none is ready. One that gets other
   * rules for what it connects to has them before anyone can wake it; rejects when the network cannot keep it to them.
   */
  async take(template: TemplateRecord, chosen: ChosenOfPool): Promise<MachineController | undefined> {
    const next = this.#next(template.id);
    const { egress, sandbox } = chosen;
    const hasRules = egress !== undefined || sandbox?.network?.rules !== undefined;
    if (next === undefined || !hasRules) return next && this.#give(template, next, chosen);
    const { network } = this.#births.deps;
    const { record } = next;
    this.#reserved.add(record.id);
    try {
      const config = egress === undefined ? record.config : withEgress(record.config, egress);
      await network.govern(networkMachine({ ...record, config, ...(sandbox !== undefined && { sandbox }) }));
    } finally {
      this.#reserved.delete(record.id);
    }
    if (this.#ready(template.id).includes(next)) return this.#give(template, next, chosen);
    await network.govern(networkMachine(next.record));
    return undefined;
  }

  /** The one to take next: rather one that is kept warm. */
  #next(template: string): MachineController | undefined {
    const ready = this.#ready(template);
    const { warm } = this.#births.controllers;
    return ready.find(({ record }) => warm.until(record.id) !== undefined) ?? ready[0];
  }

  #give(
    { id }: TemplateRecord,
    taken: MachineController,
    { name, cordoned = false, egress, sandbox, lease }: ChosenOfPool,
  ): MachineController {
    const { controllers } = this.#births;
    const { keepWarmS } = this.#births.deps.settings;
    controllers.warm.shorten(taken.record.id, Math.max(keepWarmMs(taken.record.config, keepWarmS), TAKEN_WARM_MS));
    const chosen = {
      ...(egress !== undefined && { egress }),
      ...(sandbox !== undefined && { sandbox }),
      ...(lease !== undefined && { lease }),
    };
    taken.note({ type: "taken", name: name ?? taken.record.name, cordoned, ...chosen });
    background(this.#refill(id, taken), "filling the pool of a template");
    return taken;
  }

  /** Whether a machine can be taken now. */
  has({ id }: TemplateRecord): boolean {
    return this.#ready(id).length > 0;
  }

  view({ id, warmPool: size }: TemplateRecord): PoolView {
    const { warm } = this.#births.controllers;
    const ready = this.#ready(id);
    return {
      size,
      ready: ready.length,
      warm: ready.filter(({ record }) => warm.until(record.id) !== undefined).length,
      reason: this.#faults.get(id) ?? null,
    };
  }

  /** All pools together. */
  total(): Omit<PoolView, "reason"> {
    const views = this.#births.deps.store.templates.list().map((template) => this.view(template));
    const sum = (field: "size" | "ready" | "warm") => views.reduce((all, view) => all + view[field], 0);
    return { size: sum("size"), ready: sum("ready"), warm: sum("warm") };
  }

  /** Destroys what waits in pools of an app, also of templates that are not known any more. */
  async emptyApp(app: string): Promise<void> {
    const members = this.#births.controllers.all().filter(({ record }) => record.app === app);
    await Promise.all(members.map((member) => this.#destroy(member)));
  }

  /** Destroys what waits in the pool of a template that is gone. */
  async empty(template: string): Promise<void> {
    this.#over(template);
    const members = membersOf(this.#births.controllers.all(), template);
    await Promise.all(members.map((member) => this.#destroy(member)));
  }

  /** Ends the work in progress. */
  async close(): Promise<void> {
    this.#unsubscribe?.();
    this.#unsubscribeFromDrain?.();
    for (const timer of this.#retries.values()) clearTimeout(timer);
    this.#closing.abort(new Error("the platform is shutting down"));
    await this.#work;
  }

  /** The machine that was taken has the CPUs and the disk first. */
  async #refill(template: string, taken: MachineController): Promise<void> {
    const wait = { timeoutMs: WAKE_MS, signal: this.#closing.signal };
    await this.#births.controllers.wait(taken, ["running", "failed", "stopped"], wait).catch(() => {});
    this.look(template);
  }

  #ready(template: string): MachineController[] {
    const members = membersOf(this.#births.controllers.all(), template);
    return members.filter(
      ({ record }) => isReady(record) && record.id !== this.#making && !this.#reserved.has(record.id),
    );
  }

  async #fill(): Promise<void> {
    for (let next = first(this.#due); next !== undefined; next = first(this.#due)) {
      if (this.#closing.signal.aborted) return;
      this.#due.delete(next);
      try {
        // Others get their turn in between.
        if (await this.#step(next)) this.#due.add(next);
        else this.#over(next);
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        this.#failed(next, messageOf(error));
      } finally {
        this.#making = undefined;
      }
    }
  }

  #over(template: string): void {
    this.#faults.delete(template);
    this.#failures.delete(template);
  }

  #failed(template: string, reason: string): void {
    const { log } = this.#births.deps;
    if (this.#faults.get(template) !== reason) log.warn({ template, reason }, "the pool of a template is not full");
    this.#faults.set(template, reason);
    const failures = this.#failures.get(template) ?? 0;
    this.#failures.set(template, failures + 1);
    const retryMs = Math.min(RETRY_MS * 2 ** failures, LONGEST_RETRY_MS);
    this.#retries.set(template, setTimeout(() => this.look(template), retryMs).unref());
  }

  /** Does the next thing that a pool needs. Returns whether there may be more. */
  async #step(id: string): Promise<boolean> {
    const { deps, controllers, drain } = this.#births;
    const template = deps.store.templates.get(id);
    const members = membersOf(controllers.all(), id);
    // One that only has to come into memory is left asleep where there is no room for it.
    const roomy = controllers.warm.open && controllers.warm.freeBytes > 0;
    const next = chooseNext(
      members.map(({ record }) => ({ record, settled: this.#settled.has(record.id) || (isReady(record) && !roomy) })),
      // What a cluster agrees on about a machine is not undone by its pool.
      deps.ownership === undefined ? (template?.warmPool ?? 0) : 0,
    );
    if (next.do === "settle" || next.do === "bear") {
      drain.refuseWork();
      if (template !== undefined) requireSameSecrets(template, deps);
    }
    switch (next.do) {
      case "nothing":
        return false;
      case "destroy":
        await this.#destroy(controllers.require(next.id));
        return true;
      case "settle":
        this.#making = next.id;
        await this.#letSleep(controllers.require(next.id));
        return true;
      case "bear": {
        if (template === undefined) return false;
        const births = { pooled: true, cordoned: true, starts: true } as const;
        const born = await bearFrom(this.#births, template, births, this.#closing.signal);
        this.#making = born.record.id;
        await this.#letSleep(born);
        return true;
      }
    }
  }

  /** Lets the machine become itself, and sleep. One that does not is destroyed, and one that may not start now stays. */
  async #letSleep(machine: MachineController): Promise<void> {
    const { controllers } = this.#births;
    const wait = { timeoutMs: STEP_TIMEOUT_MS, signal: this.#closing.signal };
    const details = { by: "pool" };
    if (machine.record.pooled !== true) return;
    machine.command({ type: "start", details });
    try {
      const { state } = await controllers.wait(machine, ["running", "failed", "stopped", "restarting"], wait);
      const { lastBoot, stateReason } = machine.record;
      if (state !== "running") throw unfit(`it is ${state}: ${stateReason ?? "no reason is known"}`);
      if (lastBoot?.kind === "cold") throw unfit(`it had to start from scratch: ${lastBoot.reason}`);
      await this.#passChecks(machine);
      machine.command({ type: "suspend", details });
      const { state: end } = await controllers.wait(machine, ["settled"], wait);
      if (end !== "suspended") throw unfit(`it does not sleep: ${machine.record.stateReason ?? `it is ${end}`}`);
      this.#settled.add(machine.record.id);
    } catch (error) {
      // The next platform finds it.
      if (!this.#closing.signal.aborted) await this.#destroy(machine);
      throw error;
    }
  }

  /**
   * Nobody gets a machine whose app does not work. And what its first answer takes is done: the memory that the app writes to is
   * its own by then, and an emulator has translated the app's code.
   */
  async #passChecks({ record }: MachineController): Promise<void> {
    const { deps } = this.#births;
    const limit = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(CHECKS_MS)]);
    const fault = await deps.passChecks?.(record, limit);
    this.#closing.signal.throwIfAborted();
    if (fault !== undefined) throw unfit(fault);
  }

  async #destroy(machine: MachineController): Promise<void> {
    const { record } = machine;
    if (record.state === "destroyed" || record.pooled !== true) return;
    machine.command({ type: "destroy", force: true, details: { by: "pool" } });
    await this.#births.controllers.wait(machine, ["destroyed"], { timeoutMs: STEP_TIMEOUT_MS });
  }
}

/** It has become itself, and sleeps with a memory. */
function isReady({ state, snapshot, newborn }: MachineRecord): boolean {
  return state === "suspended" && snapshot !== null && newborn !== true;
}

function first<T>(set: ReadonlySet<T>): T | undefined {
  return set.values().next().value;
}

function unfit(why: string): HibernautError {
  return new HibernautError("failed_precondition", `A machine for the pool did not get ready: ${why}.`);
}
