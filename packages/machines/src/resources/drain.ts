/** The drain of the platform: refuses new work, and suspends machines before their host goes down. */
import { type DrainedMachine, type DrainRecord, type DrainRequest } from "@hibernaut/domain/drain";
import { messageOf } from "@hibernaut/lib/text";
import type { ControllerSet } from "../controller-set.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { continues, drainFor, drainingRefusal, progressOf } from "../drain/rules.ts";
import { startAgain } from "../drain/start-again.ts";
import { suspendAll } from "../drain/suspend-all.ts";

/** A drain and how far it has come. */
export interface DrainView {
  drain: DrainRecord;
  /** The machines that it concerns, app by app; none without a suspend. */
  machines: DrainedMachine[];
}

/** One drain at most. What is stored decides; the work follows it. */
export class Drain {
  readonly #deps: MachineDependencies;
  readonly #controllers: ControllerSet;
  readonly #listeners = new Set<(draining: boolean) => void>();
  #record: DrainRecord | undefined;
  #work: { promise: Promise<void>; abort: AbortController } | undefined;

  constructor(deps: MachineDependencies, controllers: ControllerSet) {
    this.#deps = deps;
    this.#controllers = controllers;
    this.#record = deps.store.drain.get();
    // A platform that starts after a drain takes work from the beginning.
    if (this.#record !== undefined && !continues(this.#record, deps.bootId)) this.#record = undefined;
  }

  /** Whether machines are not started or created at the moment. */
  get active(): boolean {
    return this.#record !== undefined;
  }

  /** Returns the drain. Undefined when there is none. */
  get(): DrainView | undefined {
    const drain = this.#record;
    if (drain === undefined) return undefined;
    const machines = drain.suspend ? this.#controllers.all().flatMap(({ record }) => progressOf(record) ?? []) : [];
    return { drain, machines };
  }

  /** Throws `draining` while machines are not started or created. */
  refuseWork(): void {
    if (this.#record !== undefined) throw drainingRefusal(this.#record);
  }

  /** Begins a drain, or lets the current one do more. Returns as soon as it is stored; {@link Drain.get} shows the rest. */
  begin(request: DrainRequest): DrainView {
    const { store, bootId, log } = this.#deps;
    const next = drainFor(request, this.#record, { now: new Date(), bootId });
    if (next !== this.#record) {
      store.drain.set(next);
      this.#record = next;
      log.info({ suspend: next.suspend, deadline: next.deadline }, "draining: machines are not started or created");
      this.#tell();
      this.#continue(next);
    }
    return { drain: next, machines: this.get()?.machines ?? [] };
  }

  /** Ends the drain and starts the machines that it suspended. Does nothing without a drain. */
  end(): void {
    if (this.#record === undefined) return;
    this.#deps.store.drain.clear();
    this.#record = undefined;
    this.#deps.log.info({}, "the drain is over");
    this.#tell();
    this.#replaceWork((signal) => startAgain(this.#controllers, this.#deps, signal));
  }

  /** Continues the drain of an earlier platform, or ends it. Call it once the machines are recovered. */
  recover(): void {
    const { store, log } = this.#deps;
    const stored = store.drain.get();
    if (this.#record !== undefined) {
      log.warn({ since: this.#record.startedAt }, "still draining; `hibernaut undrain` ends it");
      return this.#continue(this.#record);
    }
    if (stored !== undefined) store.drain.clear();
    this.#replaceWork((signal) => startAgain(this.#controllers, this.#deps, signal));
  }

  /** Calls `listener` whenever a drain begins or ends. Returns a function that ends that. */
  subscribe(listener: (draining: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Stops working on it. The next platform continues it. */
  async close(): Promise<void> {
    this.#work?.abort.abort(new Error("the platform is shutting down"));
    await this.#work?.promise;
  }

  #continue(drain: DrainRecord): void {
    if (drain.suspend && drain.completedAt === null) this.#replaceWork((signal) => this.#suspendAll(drain, signal));
    else this.#work?.abort.abort(new Error("a drain began"));
  }

  async #suspendAll(drain: DrainRecord, signal: AbortSignal): Promise<void> {
    const { store, log } = this.#deps;
    const timeout = new AbortController();
    const leftMs = Math.max(0, Date.parse(drain.deadline ?? drain.startedAt) - Date.now());
    const timer = setTimeout(() => timeout.abort(new Error("the drain ran out of time")), leftMs);
    try {
      const limit = AbortSignal.any([signal, timeout.signal]);
      await suspendAll(this.#controllers, this.#deps, { limit, signal });
    } finally {
      clearTimeout(timer);
    }
    if (signal.aborted || this.#record !== drain) return;
    this.#record = { ...drain, completedAt: new Date().toISOString() };
    store.drain.set(this.#record);
    const { machines = [] } = this.get() ?? {};
    const left = machines.filter(({ result }) => result !== "suspended").map(({ id }) => id);
    if (left.length > 0) log.warn({ left }, "drained, except for machines that keep running; their events say why");
    else log.info({ machines: machines.length }, "drained: no machine is running");
  }

  /** Ends what is being worked on, then does this. */
  #replaceWork(work: (signal: AbortSignal) => Promise<void>): void {
    const before = this.#work;
    before?.abort.abort(new Error("something else was requested of the drain"));
    const abort = new AbortController();
    const promise = (before?.promise ?? Promise.resolve())
      .then(() => (abort.signal.aborted ? undefined : work(abort.signal)))
      .catch((error: unknown) => this.#deps.log.error({ reason: messageOf(error) }, "the drain cannot continue"));
    this.#work = { promise, abort };
  }

  #tell(): void {
    for (const listener of this.#listeners) listener(this.active);
  }
}
