/** The latest results of all checks: written by the runner, read by anything that shows machines. */
import type { CheckResult } from "@hibernaut/domain/check";
import { type HealthCheck, isHealthy } from "./policy.ts";

interface CheckedMachine {
  checks: readonly HealthCheck[];
  /** By the name of the check. */
  results: Map<string, CheckResult>;
}

/** Knows the machines that are being checked; machines without checks, or that are not running, are not in it. */
export class CheckResults {
  readonly #machines = new Map<string, CheckedMachine>();

  readonly #listeners = new Set<(id: string) => void>();

  /** Calls `listener` after every result. Returns a function that ends that. */
  subscribe(listener: (id: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns the latest results of a machine's checks. */
  of(id: string): CheckResult[] {
    return [...(this.#machines.get(id)?.results.values() ?? [])];
  }

  /** Returns whether a running machine may take requests: all its checks passed when they last ran. */
  isHealthy(id: string): boolean {
    const machine = this.#machines.get(id);
    return machine === undefined || isHealthy(machine.checks, [...machine.results.values()]);
  }

  /** Begins with a machine, whose checks have not run except for the results given. */
  begin(id: string, checks: readonly HealthCheck[], results: readonly CheckResult[]): void {
    this.#machines.set(id, { checks, results: new Map(results.map((result) => [result.name, result])) });
  }

  /** Returns the last result of a check. */
  last(id: string, name: string): CheckResult | undefined {
    return this.#machines.get(id)?.results.get(name);
  }

  /** Stores a result. Returns whether the machine's health changed with it. */
  set(id: string, result: CheckResult): boolean {
    const before = this.isHealthy(id);
    this.#machines.get(id)?.results.set(result.name, result);
    for (const listener of this.#listeners) listener(id);
    return this.isHealthy(id) !== before;
  }

  delete(id: string): void {
    this.#machines.delete(id);
  }
}
