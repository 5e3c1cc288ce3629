/** What one proxy knows: the machines, the apps they belong to, and the hostnames that lead there. */
import type { TableMachine } from "./messages.ts";
import { fromWire } from "./messages.ts";
import { RoutedMachine } from "./routed-machine.ts";
import { appOf } from "./routing.ts";

const NO_MACHINES: readonly RoutedMachine[] = [];

/** The proxy's copy of the coordinator's table. Machines without a service are not in it. */
export class MachineTable {
  readonly #machines = new Map<string, RoutedMachine>();
  readonly #byApp = new Map<string, readonly RoutedMachine[]>();
  readonly #now: () => number;
  hostnames: Readonly<Record<string, string>> = {};
  suffixes: readonly string[] = [];
  /** Whether connections to a machine outlive its sleep. */
  connectionsSurvive = false;
  /** The host's address in the machines' network, if they have one. */
  gateway: string | undefined;
  /** The app of each machine's address, also of machines without a service. */
  readonly appsByAddress = new Map<string, string>();
  /** Whether the platform starts no machines at the moment. */
  draining = false;
  /** The answers to open challenges, by `<hostname>/<token>`. */
  challenges: Readonly<Record<string, string>> = {};

  /** @param now milliseconds of a steady clock */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the app that answers for the hostname, if there is one with a machine. */
  appFor(hostname: string): string | undefined {
    const app = appOf(hostname, this.hostnames, this.suffixes);
    return app !== undefined && this.#byApp.has(app) ? app : undefined;
  }

  get(id: string): RoutedMachine | undefined {
    return this.#machines.get(id);
  }

  ofApp(app: string): readonly RoutedMachine[] {
    return this.#byApp.get(app) ?? NO_MACHINES;
  }

  all(): RoutedMachine[] {
    return [...this.#machines.values()];
  }

  apps(): string[] {
    return [...this.#byApp.keys()];
  }

  /** Adds or updates a machine that has a service. Returns it, and whether its state changed. */
  put(row: TableMachine, wirePolicy: NonNullable<TableMachine["policy"]>): { machine: RoutedMachine; moved: boolean } {
    const policy = fromWire(wirePolicy);
    const known = this.#machines.get(row.id);
    if (known !== undefined) return { machine: known, moved: known.update(row, policy) };
    const machine = new RoutedMachine(row, policy, this.#now);
    this.#machines.set(row.id, machine);
    this.#byApp.set(row.app, [...this.ofApp(row.app), machine]);
    return { machine, moved: false };
  }

  /** Removes a machine, and its app with the last one. Returns the machine if there was one. */
  remove(id: string): RoutedMachine | undefined {
    const machine = this.#machines.get(id);
    if (machine === undefined) return undefined;
    const { app } = machine.row;
    this.#machines.delete(id);
    const left = this.ofApp(app).filter((other) => other !== machine);
    if (left.length > 0) this.#byApp.set(app, left);
    else this.#byApp.delete(app);
    return machine;
  }
}
