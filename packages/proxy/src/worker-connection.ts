/** What a worker's own connection to an app of its network means for the worker's sleep. */
import type { ClientEnd } from "./contract.ts";
import type { LeaseKeeper } from "./machine-lease.ts";
import type { RoutedMachine } from "./routed-machine.ts";

/** Keeps the worker awake while something passes, and wakes it for what comes back: the job that it waited for. */
export class WorkerConnection implements ClientEnd {
  readonly #keeper: Pick<LeaseKeeper, "onLoadChanged" | "onWanted" | "now">;
  readonly #worker: RoutedMachine;
  #quiet = false;

  constructor(keeper: Pick<LeaseKeeper, "onLoadChanged" | "onWanted" | "now">, worker: RoutedMachine) {
    this.#keeper = keeper;
    this.#worker = worker;
    worker.waits += 1;
    worker.tunnels += 1;
    worker.open.add(this);
    keeper.onLoadChanged(worker);
  }

  quiet(quiet: boolean): void {
    if (quiet === this.#quiet) return;
    this.#quiet = quiet;
    if (quiet) this.#forget();
    else {
      this.#worker.tunnels += 1;
      this.#worker.open.add(this);
    }
    this.#keeper.onLoadChanged(this.#worker);
  }

  answered(): void {
    const { state } = this.#worker;
    // One that was stopped is not waiting for anything.
    if (state === "suspending" || state === "suspended") this.#keeper.onWanted(this.#worker);
  }

  release(): void {
    this.#worker.waits -= 1;
    if (!this.#quiet) this.#forget();
    this.#keeper.onLoadChanged(this.#worker);
  }

  #forget(): void {
    this.#worker.tunnels -= 1;
    this.#worker.open.remove(this, this.#keeper.now());
  }
}
