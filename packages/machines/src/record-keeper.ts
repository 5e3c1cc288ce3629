/** What is stored of one machine: decides on what happened, stores what follows from it, and tells those who follow the machine. */
import { setTimeout as delay } from "node:timers/promises";
import type { StopConfig } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { messageOf } from "@hibernaut/lib/text";
import type { ChangeListener } from "./changes.ts";
import { ClientRemarks } from "./client-remarks.ts";
import { type Decision, decide, type EffectFailed, type EffectOutcome, type LifecycleEvent } from "./decide/index.ts";
import type { MachineDependencies } from "./dependencies.ts";
import { limitsOf } from "./eligibility.ts";
import { newUlid } from "./identity.ts";
import type { MachineLog } from "./logs/machine-log.ts";
import { sentenceOf } from "./logs/sentences.ts";
import { type Unstored, UnstoredLog, unstored } from "./unstored.ts";

/** Waits before an outcome is stored again, in milliseconds: the first, and the longest. */
const STORE_RETRY_MS = 100;
const STORE_RETRY_LONGEST_MS = 5_000;

/** How an outcome is reported: see {@link RecordKeeper.persist}. */
interface Report {
  /** Whether something else was requested meanwhile. Asked each time. */
  superseded(): boolean;
  /** Decides on the event, stores and begins what follows. Throws when it cannot be stored. */
  happened(event: LifecycleEvent): Decision;
  /** Whether the platform ends, and the next one continues from what is stored. */
  closed(): boolean;
}

export class RecordKeeper {
  readonly #deps: MachineDependencies;
  readonly #machineLog: Pick<MachineLog, "platform">;
  readonly #listeners = new Set<ChangeListener>();
  readonly #clientRemarks = new ClientRemarks();
  #stored: MachineRecord;
  /** What others see in place of the record while an outcome cannot be stored. */
  #unstored: Unstored | undefined;
  /** Of the last stop that began, over those of the machine. */
  stopTerms: StopConfig = {};

  constructor(deps: MachineDependencies, machineLog: Pick<MachineLog, "platform">, record: MachineRecord) {
    this.#deps = deps;
    this.#machineLog = machineLog;
    this.#stored = record;
  }

  /** The record as it is stored. Never changed in place. */
  get stored(): MachineRecord {
    return this.#stored;
  }

  /** What others see: what is stored; while an outcome cannot be stored, with why it is not so. */
  get shown(): MachineRecord {
    return this.#unstored === undefined ? this.#stored : { ...this.#stored, ...this.#unstored };
  }

  /** Whether an outcome cannot be stored at the moment. */
  get isUnstored(): boolean {
    return this.#unstored !== undefined;
  }

  /** Calls `listener` with the record after every change that others can see. Returns how to stop that. */
  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  announce(): void {
    for (const listener of [...this.#listeners]) listener(this.shown);
  }

  /** Decides on what happened, stores that and logs it. Throws when it cannot be stored; nothing has happened then. */
  take(event: LifecycleEvent): Decision {
    const { tell, ...decided } = this.#decide(event);
    const { history, ...others } = tell;
    const told = history && this.#clientRemarks.add(history);
    const decision = { ...decided, tell: { ...others, ...(told !== undefined && { history: told }) } };
    this.#store(decision);
    this.#log(decision);
    return decision;
  }

  /** Stores what `change` makes of the record, if that is another one. */
  restate(change: (record: MachineRecord) => MachineRecord): void {
    const record = change(this.#stored);
    if (record === this.#stored) return;
    this.#deps.store.machines.update(record);
    this.#stored = record;
    this.announce();
  }

  /**
   * Has an outcome happen. A store that cannot be written (a full disk) must not leave the machine in a passing state
   * forever: it is tried again until it works or the platform ends, and recovery continues from there. Meanwhile, the
   * machine says that it is not what is stored.
   */
  async persist(outcome: EffectOutcome | EffectFailed, { superseded, happened, closed }: Report): Promise<void> {
    const log = new UnstoredLog(this.#deps.log, { machine: this.#stored.id, outcome: outcome.type });
    for (let wait = STORE_RETRY_MS; ; wait = Math.min(wait * 2, STORE_RETRY_LONGEST_MS)) {
      const event: LifecycleEvent = superseded() ? { type: "superseded", outcome } : outcome;
      const shown = this.#unstored;
      this.#unstored = undefined;
      try {
        const { tell } = happened(event);
        if (tell.refusal !== undefined) this.#deps.log.warn({ machine: this.#stored.id }, tell.refusal.message);
        if (log.stored() && !tell.followers) this.announce();
        return;
      } catch (error) {
        this.#unstored = unstored(this.#decide(event), error);
        if (this.#unstored?.stateReason !== shown?.stateReason) this.announce();
        log.failed(error, wait);
        if (closed()) return;
        await delay(wait, undefined, { ref: false });
      }
    }
  }

  #decide(event: LifecycleEvent): Decision {
    const context = {
      now: this.#deps.clock?.() ?? new Date(),
      id: newUlid(),
      limits: limitsOf(this.#stored, this.#deps),
      stopTerms: this.stopTerms,
      startRefusal: () => this.#deps.quotas?.startRefusal(this.#stored.app),
    };
    return decide(this.#stored, event, context);
  }

  #store({ record, tell, bestEffort, unsynced }: Decision): void {
    if (record === this.#stored) return;
    if (bestEffort) this.#stored = record;
    try {
      this.#deps.store.machines.update(record, tell.history, { unsynced: unsynced === true });
    } catch (error) {
      if (!bestEffort) throw error;
      const { id: machine, stateReason } = record;
      const event = tell.history?.type;
      this.#deps.log.warn({ machine, event, stateReason, reason: messageOf(error) }, "an event cannot be stored");
    }
    this.#stored = record;
  }

  #log({ tell: { history, log } }: Decision): void {
    const { id: machine, app } = this.#stored;
    if (log !== undefined) this.#machineLog.platform(log);
    if (history === undefined) return;
    const { type, from, to, details } = history;
    this.#deps.log.info({ machine, app, event: type, from, to, ...details }, `${from} -> ${to}`);
    // Its directory is gone, and those who followed were told that it was being destroyed.
    if (to !== "destroyed") this.#machineLog.platform(sentenceOf(history));
  }
}
