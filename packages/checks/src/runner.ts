/** Runs the checks of running machines, each at its own interval. Machines that sleep are never checked. */
import { setTimeout as delay } from "node:timers/promises";
import type { CheckResult } from "@hibernaut/domain/check";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Machines } from "@hibernaut/machines";
import { checksOf, type HealthCheck, judge, nextCheckMs } from "./policy.ts";
import { probe } from "./probe.ts";
import type { CheckResults } from "./results.ts";

/** The checks of one machine, while it is running. */
interface Run {
  startedAt: number;
  stop: AbortController;
  done: Promise<unknown>;
}

export class CheckRunner {
  readonly #results: CheckResults;
  readonly #runs = new Map<string, Run>();
  readonly #listeners = new Set<(id: string) => void>();
  readonly #unsubscribe: () => void;

  /** Starts with the machines that are running now. */
  constructor(machines: Pick<Machines, "all" | "subscribe">, results: CheckResults) {
    this.#results = results;
    this.#unsubscribe = machines.subscribe("health", (record) => this.#changed(record));
    for (const { record } of machines.all()) this.#changed(record);
  }

  /** Returns whether a running machine may take requests. */
  isHealthy(id: string): boolean {
    return this.#results.isHealthy(id);
  }

  /**
   * Calls `listener` when a check changes what `isHealthy` says about a machine. A change of the machine itself may
   * change that too, and is not repeated here. Returns a function that ends that.
   */
  subscribe(listener: (id: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    const runs = [...this.#runs];
    for (const [id] of runs) this.#end(id);
    await Promise.all(runs.map(([, { done }]) => done));
  }

  #changed(record: MachineRecord): void {
    const { id, config, lastBoot } = record;
    const running = record.state === "running";
    if (running && this.#runs.has(id)) return;
    this.#end(id);
    const checks = running ? checksOf(config) : [];
    if (checks.length === 0) return;
    // A machine that was resumed is as healthy as it was before: no request should wait for a check.
    this.#results.begin(id, checks, lastBoot !== null && lastBoot.kind !== "cold" ? checks.map(presumed) : []);
    const run: Run = { startedAt: performance.now(), stop: new AbortController(), done: Promise.resolve() };
    this.#runs.set(id, run);
    run.done = Promise.all(checks.map((check) => this.#repeat(record, run, check)));
  }

  #end(id: string): void {
    this.#runs.get(id)?.stop.abort();
    this.#runs.delete(id);
    this.#results.delete(id);
  }

  async #repeat({ id, address }: MachineRecord, run: Run, check: HealthCheck): Promise<void> {
    const { signal } = run.stop;
    while (!signal.aborted) {
      const found = await probe(address, check, signal);
      if (signal.aborted) return;
      const result = judge(check, found, this.#results.last(id, check.name), performance.now() - run.startedAt);
      if (this.#results.set(id, result)) for (const listener of this.#listeners) listener(id);
      await delay(nextCheckMs(check, result), undefined, { signal, ref: false }).catch(() => {});
    }
  }
}

function presumed({ name }: HealthCheck): CheckResult {
  return { name, status: "passing", output: "as before the sleep", updated_at: new Date().toISOString() };
}
