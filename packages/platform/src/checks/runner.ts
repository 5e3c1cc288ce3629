/** Runs the checks of running machines, each at its own interval. Never touches a sleeping machine. */
import { setTimeout as delay } from "node:timers/promises";
import type { CheckResult } from "../domain/check.ts";
import type { Machines } from "../machines/resources/machines.ts";
import type { MachineRecord } from "../domain/machine.ts";
import { type Check, checksOf, isHealthy, judge, nextLookMs } from "./policy.ts";
import { probe } from "./probe.ts";

interface Watched {
  checks: Check[];
  results: Map<string, CheckResult>;
  startedAt: number;
  stop: AbortController;
  done: Promise<unknown>;
}

export class CheckRunner {
  readonly #watched = new Map<string, Watched>();
  readonly #listeners = new Set<(id: string) => void>();
  #unsubscribe: () => void = () => {};

  /** Starts with the machines that are running now. */
  start(machines: Pick<Machines, "all" | "onChange">): void {
    this.#unsubscribe = machines.onChange((record) => this.#changed(record));
    for (const { record } of machines.all()) this.#changed(record);
  }

  results(id: string): CheckResult[] {
    return [...(this.#watched.get(id)?.results.values() ?? [])];
  }

  /** Whether a running machine may take requests. */
  isHealthy(id: string): boolean {
    const watched = this.#watched.get(id);
    return watched === undefined || isHealthy(watched.checks, [...watched.results.values()]);
  }

  /** Tells when `isHealthy` of a machine changes. Returns how to stop that. */
  onChange(listener: (id: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    const all = [...this.#watched.values()];
    this.#watched.clear();
    for (const { stop } of all) stop.abort();
    await Promise.all(all.map(({ done }) => done));
  }

  #changed(record: MachineRecord): void {
    const before = this.#watched.get(record.id);
    const runs = record.state === "running";
    if (runs && before !== undefined) return;
    before?.stop.abort();
    this.#watched.delete(record.id);
    const checks = runs ? checksOf(record.config) : [];
    if (checks.length === 0) return;
    const stop = new AbortController();
    const watched: Watched = {
      checks,
      results: new Map(),
      startedAt: performance.now(),
      stop,
      done: Promise.resolve(),
    };
    // What sleeps as it was wakes as it was: nobody should wait for a look.
    if (record.lastBoot?.kind === "resume")
      for (const check of checks) watched.results.set(check.name, presumed(check));
    this.#watched.set(record.id, watched);
    watched.done = Promise.all(checks.map((check) => this.#watch(record, watched, check)));
  }

  async #watch({ id, address }: MachineRecord, watched: Watched, check: Check): Promise<void> {
    const { signal } = watched.stop;
    while (!signal.aborted) {
      const finding = await probe(address, check, signal);
      if (signal.aborted) return;
      const healthy = this.isHealthy(id);
      const sinceStartMs = performance.now() - watched.startedAt;
      const result = judge(check, finding, watched.results.get(check.name), sinceStartMs);
      watched.results.set(check.name, result);
      if (this.isHealthy(id) !== healthy) for (const listener of this.#listeners) listener(id);
      await delay(nextLookMs(check, result), undefined, { signal, ref: false }).catch(() => {});
    }
  }
}

function presumed({ name }: Check): CheckResult {
  return { name, status: "passing", output: "as before it slept", updated_at: new Date().toISOString() };
}
