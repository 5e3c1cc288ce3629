/** What one proxy knows: the machines, the apps they belong to, and the hostnames that lead there. */
import { AppMachines, isForNeighbours } from "./app-machines.ts";
import type { TableMachine, ToProxy } from "./messages.ts";
import { fromWire } from "./messages.ts";
import { RoutedMachine } from "./routed-machine.ts";
import { appOf, machineHostOf, withoutDot } from "./routing.ts";
import type { ServicePolicy } from "./service-policy.ts";

const NO_MACHINES = new AppMachines([]);

type OpenChallenges = Pick<Extract<ToProxy, { kind: "challenges" }>, "challenges" | "challengeCertificates">;

/** The proxy's copy of the coordinator's table. Machines without a service are not in it. */
export class MachineTable {
  readonly #machines = new Map<string, RoutedMachine>();
  readonly #byApp = new Map<string, AppMachines>();
  readonly #now: () => number;
  hostnames: Readonly<Record<string, string>> = {};
  /** The names at which no app answers. */
  reserved: ReadonlySet<string> = new Set();
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
  /** The certificates that answer other challenges, with their keys in PEM, by hostname. */
  readonly challengeCertificates = new Map<string, string>();

  /** @param now milliseconds of a steady clock */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes over which challenges of certificate authorities are open. */
  setChallenges({ challenges, challengeCertificates = {} }: OpenChallenges): void {
    this.challenges = challenges;
    this.challengeCertificates.clear();
    for (const [hostname, pem] of Object.entries(challengeCertificates)) this.challengeCertificates.set(hostname, pem);
  }

  /** Returns the app that answers for the hostname, or for one of its machines, if there is one with a machine. */
  appFor(hostname: string): string | undefined {
    if (this.reserved.has(withoutDot(hostname))) return undefined;
    const app = appOf(hostname, this.hostnames, this.suffixes);
    if (app !== undefined) return this.#byApp.has(app) ? app : undefined;
    const named = machineHostOf(hostname, this.suffixes)?.app;
    return named !== undefined && this.ofApp(named).prepared.addressable ? named : undefined;
  }

  /** Returns what the hostname has before the app, if it is a machine's. */
  labelOf(hostname: string): string | undefined {
    if (appOf(hostname, this.hostnames, this.suffixes) !== undefined) return undefined;
    return machineHostOf(hostname, this.suffixes)?.label;
  }

  /** Returns a machine of the app by its whole id, or else by its name. */
  find(app: string, word: string): RoutedMachine | undefined {
    const machine = this.#machines.get(word);
    return machine?.row.app === app ? machine : this.ofApp(app).prepared.byName.get(word);
  }

  get(id: string): RoutedMachine | undefined {
    return this.#machines.get(id);
  }

  /** Returns the machines of the app. */
  ofApp(app: string): AppMachines {
    return this.#byApp.get(app) ?? NO_MACHINES;
  }

  all(): RoutedMachine[] {
    return [...this.#machines.values()];
  }

  apps(): string[] {
    return [...this.#byApp.keys()];
  }

  /** Adds or updates a machine that has a service. Returns it, and whether its state changed. */
  put(
    { tcpHandled = [], own = [], ...given }: TableMachine,
    wirePolicy: NonNullable<TableMachine["policy"]>,
  ): { machine: RoutedMachine; moved: boolean } {
    const policy = fromWire(wirePolicy);
    const more = [...tcpHandled, ...own];
    const row = more.length === 0 ? given : { ...given, tcp: [...(given.tcp ?? []), ...more] };
    const known = this.#machines.get(row.id);
    if (known !== undefined) {
      const differs = foundDifferently(known, row, policy);
      const moved = known.update(row, policy);
      if (differs) this.#byApp.get(row.app)?.changed();
      return { machine: known, moved };
    }
    const machine = new RoutedMachine(row, policy, this.#now);
    this.#machines.set(row.id, machine);
    this.#byApp.set(row.app, new AppMachines([...this.ofApp(row.app).all, machine]));
    return { machine, moved: false };
  }

  /** Removes a machine, and its app with the last one. Returns the machine if there was one. */
  remove(id: string): RoutedMachine | undefined {
    const machine = this.#machines.get(id);
    if (machine === undefined) return undefined;
    const { app } = machine.row;
    this.#machines.delete(id);
    const left = this.ofApp(app).all.filter((other) => other !== machine);
    if (left.length > 0) this.#byApp.set(app, new AppMachines(left));
    else this.#byApp.delete(app);
    return machine;
  }
}

/** Whether requests find the machine in another way than before. States change much more often. */
function foundDifferently({ row, policy }: RoutedMachine, now: TableMachine, nowPolicy: ServicePolicy): boolean {
  const { web, pinned, forceHttps, wakePage, ownPorts } = policy;
  if (row.name !== now.name || web !== nowPolicy.web || pinned !== nowPolicy.pinned) return true;
  if (isForNeighbours({ row, policy }) !== isForNeighbours({ row: now, policy: nowPolicy })) return true;
  if (forceHttps !== nowPolicy.forceHttps || wakePage !== nowPolicy.wakePage) return true;
  return ownPorts.length > 0 !== nowPolicy.ownPorts.length > 0;
}
