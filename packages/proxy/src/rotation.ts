/** Keeps as many machines of an app in the rotation for new requests as it has needed lately; the others rest. */
import { isPrewarming } from "@hibernaut/machines";
import type { CoordinatedMachine } from "./coordinated-machine.ts";
import { Demand } from "./demand.ts";
import { type IdleMachine, neededOf, planRest, sharing } from "./idle.ts";

export interface RotationOptions {
  known: ReadonlyMap<string, CoordinatedMachine>;
  /** What the rules look at in a machine. */
  look(machine: CoordinatedMachine): IdleMachine;
  /** Whether requests can be given to the machine: its checks pass, and its app listens where requests arrive. */
  isUsable(machine: CoordinatedMachine): boolean;
  /** Tells the proxies what changed about a machine. */
  tell(machine: CoordinatedMachine): void;
  /** Milliseconds of a steady clock. */
  now(): number;
}

export class Rotation {
  readonly #options: RotationOptions;
  /** By pool: see {@link CoordinatedMachine.pool}. */
  readonly #demand = new Map<string, Demand>();

  constructor(options: RotationOptions) {
    this.#options = options;
  }

  /** Takes a pool's machines in excess out of the rotation, and others back into it. */
  arrange(pool: string, running: readonly CoordinatedMachine[]): void {
    const { look, isUsable, tell, now } = this.#options;
    // Machines that take no requests anyway do no work that others could be spared for.
    const usable = running.filter(isUsable).map(look);
    const demand = this.#demandOf(pool);
    demand.note(neededOf(usable), now());
    const excess = planRest(usable, demand.lately(idleTimeoutMs(running), now()));
    for (const machine of running) {
      const resting = excess.has(machine.record.id);
      if (machine.resting === resting) continue;
      machine.resting = resting;
      tell(machine);
    }
  }

  /** A machine is running now: someone wanted as many machines as there are. */
  cameUp(machine: CoordinatedMachine): void {
    const { pool } = machine;
    this.#demandOf(pool).note(sharing(this.#running(pool)).length, this.#options.now());
  }

  /** A machine reached its soft limit. */
  becameBusy(machine: CoordinatedMachine): void {
    const { pool } = machine;
    this.#demandOf(pool).note(neededOf(this.#running(pool).map(this.#options.look)), this.#options.now());
  }

  /** A request needs a machine that rests: it takes part again. */
  recall(machine: CoordinatedMachine): void {
    const { pool } = machine;
    machine.resting = false;
    this.#demandOf(pool).note(
      sharing(this.#running(pool)).filter(({ resting }) => !resting).length,
      this.#options.now(),
    );
    this.#options.tell(machine);
  }

  /** Milliseconds until any pool needs fewer machines than it did lately; Infinity if none will. */
  untilLessMs(): number {
    const pools = Map.groupBy(this.#options.known.values(), ({ pool }) => pool);
    let wait = Number.POSITIVE_INFINITY;
    for (const [pool, machines] of pools) wait = Math.min(wait, this.#untilLess(pool, machines.filter(takesPart)));
    return wait;
  }

  /** The same for one pool: this runs for every request. */
  untilLessOfMs(pool: string): number {
    return this.#demand.has(pool) ? this.#untilLess(pool, this.#running(pool)) : Number.POSITIVE_INFINITY;
  }

  /** Forgets the pools that have no machines any more. */
  keepOnly(pools: { has(pool: string): boolean }): void {
    for (const pool of this.#demand.keys()) if (!pools.has(pool)) this.#demand.delete(pool);
  }

  #untilLess(pool: string, running: readonly CoordinatedMachine[]): number {
    const demand = this.#demand.get(pool);
    if (demand === undefined || sharing(running).length < 2) return Number.POSITIVE_INFINITY;
    return demand.untilLessMs(idleTimeoutMs(running), this.#options.now());
  }

  #running(pool: string): CoordinatedMachine[] {
    return [...this.#options.known.values()].filter((machine) => machine.pool === pool && takesPart(machine));
  }

  #demandOf(pool: string): Demand {
    const known = this.#demand.get(pool);
    if (known !== undefined) return known;
    const demand = new Demand();
    this.#demand.set(pool, demand);
    return demand;
  }
}

/** Whether the proxy may give the machine requests, and put it to sleep. */
export function takesPart({ record, policy }: CoordinatedMachine): boolean {
  return record.state === "running" && record.cordoned !== true && !isPrewarming(record) && policy !== undefined;
}

function idleTimeoutMs(running: readonly CoordinatedMachine[]): number {
  return Math.max(0, ...sharing(running).map(({ policy }) => policy?.idleTimeoutMs ?? 0));
}
