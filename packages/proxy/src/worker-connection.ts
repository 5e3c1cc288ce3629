/** What a worker's own connection to an app of its network means for the worker's sleep. */
import type { MachineState } from "@hibernaut/domain/machine";
import type { ClientEnd } from "./contract.ts";
import type { LeaseKeeper } from "./machine-lease.ts";
import type { RoutedMachine } from "./routed-machine.ts";

const ASLEEP: ReadonlySet<MachineState> = new Set(["suspending", "suspended", "starting", "failed"]);

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
    // The platform knows of one whose wake it has just refused, and sees to it.
    if (this.#sleeps && this.#worker.refusal === undefined) this.#keeper.onWanted(this.#worker);
  }

  breakOff(cut: () => void): void {
    // One that is about to sleep still gets the packet, and is called back to read it.
    if (ASLEEP.has(this.#worker.row.state)) this.#worker.onceAwake.add(cut);
    else cut();
    this.answered();
  }

  /** One that was stopped is not waiting for anything. One that starts is not there yet. */
  get #sleeps(): boolean {
    return ASLEEP.has(this.#worker.state);
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
