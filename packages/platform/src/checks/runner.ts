/** Looks at machines that run, each check at its own interval. A machine that sleeps is never looked at. */
import { setTimeout as delay } from "node:timers/promises";
import type { CheckResult } from "../domain/check.ts";
import type { Machines } from "../machines/resources/machines.ts";
import type { MachineRecord } from "../domain/machine.ts";
import { type HealthCheck, checksOf, isHealthy, judge, nextLookMs } from "./policy.ts";
import { probe } from "./probe.ts";

interface CheckedMachine {
  checks: HealthCheck[];
  results: Map<string, CheckResult>;
  startedAt: number;
  stop: AbortController;
  done: Promise<unknown>;
}

export class CheckRunner {
  readonly #checked = new Map<string, CheckedMachine>();
  readonly #listeners = new Set<(id: string) => void>();
  #unsubscribe: () => void = () => {};

  /** Begins with the machines that run now. */
  start(machines: Pick<Machines, "all" | "onChange">): void {
    this.#unsubscribe = machines.onChange((record) => this.#changed(record));
    for (const { record } of machines.all()) this.#changed(record);
  }

  results(id: string): CheckResult[] {
    return [...(this.#checked.get(id)?.results.values() ?? [])];
  }

  /** Whether a running machine may take requests. */
  isHealthy(id: string): boolean {
    const checked = this.#checked.get(id);
    return checked === undefined || isHealthy(checked.checks, [...checked.results.values()]);
  }

  /** Tells when `isHealthy` of a machine changes. Returns how to stop that. */
  onChange(listener: (id: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    const all = [...this.#checked.values()];
    this.#checked.clear();
    for (const { stop } of all) stop.abort();
    await Promise.all(all.map(({ done }) => done));
  }

  #changed(record: MachineRecord): void {
    const before = this.#checked.get(record.id);
    const runs = record.state === "running";
    if (runs && before !== undefined) return;
    before?.stop.abort();
    this.#checked.delete(record.id);
    const checks = runs ? checksOf(record.config) : [];
    if (checks.length === 0) return;
    const stop = new AbortController();
    const checked: CheckedMachine = {
      checks,
      results: new Map(),
      startedAt: performance.now(),
      stop,
      done: Promise.resolve(),
    };
    // What sleeps as it was wakes as it was: nobody should wait for a look.
    if (record.lastBoot?.kind === "resume")
      for (const check of checks) checked.results.set(check.name, presumed(check));
    this.#checked.set(record.id, checked);
    checked.done = Promise.all(checks.map((check) => this.#watch(record, checked, check)));
  }

  async #watch({ id, address }: MachineRecord, checked: CheckedMachine, check: HealthCheck): Promise<void> {
    const { signal } = checked.stop;
    while (!signal.aborted) {
      const found = await probe(address, check, signal);
      if (signal.aborted) return;
      const healthy = this.isHealthy(id);
      const sinceStartMs = performance.now() - checked.startedAt;
      const result = judge(check, found, checked.results.get(check.name), sinceStartMs);
      checked.results.set(check.name, result);
      if (this.isHealthy(id) !== healthy) for (const listener of this.#listeners) listener(id);
      await delay(nextLookMs(check, result), undefined, { signal, ref: false }).catch(() => {});
    }
  }
}

function presumed({ name }: HealthCheck): CheckResult {
  return { name, status: "passing", output: "as before it slept", updated_at: new Date().toISOString() };
}
