/** The machines of all other hosts, as the proxies of this host are told about them. */
import type { Cluster } from "@hibernaut/cluster";
import { KEYS, nameOf, type PublishedMachine } from "@hibernaut/cluster/keys";
import type { TableMachine } from "../messages.ts";
import { remoteRow } from "./remote-rows.ts";

/** Row undefined: no other host has the machine for requests. */
type Listener = (id: string, row: TableMachine | undefined) => void;

interface RemoteMachinesOptions {
  cluster: Pick<Cluster, "host" | "view">;
  /** Asks another host to wake a machine. */
  wake(row: TableMachine): void;
}

export class RemoteMachines {
  readonly #cluster: RemoteMachinesOptions["cluster"];
  readonly #wake: RemoteMachinesOptions["wake"];
  readonly #rows = new Map<string, TableMachine>();
  readonly #listeners = new Set<Listener>();
  readonly #unsubscribes: (() => void)[];

  constructor({ cluster, wake }: RemoteMachinesOptions) {
    this.#cluster = cluster;
    this.#wake = wake;
    const { view } = cluster;
    const byKey = (changes: readonly { key: string }[]) => {
      for (const { key } of changes) this.#look(nameOf(key));
    };
    this.#unsubscribes = [
      view.subscribe(KEYS.machines, byKey),
      view.subscribe(KEYS.states, byKey),
      view.subscribe(KEYS.hosts, (changes) => this.#hostsChanged(new Set(changes.map(({ key }) => nameOf(key))))),
    ];
    for (const { id } of view.machines()) this.#look(id);
  }

  /** The machines that requests can reach. */
  all(): TableMachine[] {
    return [...this.#rows.values()];
  }

  /** Whether another host owns the machine, so that what this host's store says about it is void. */
  has(id: string): boolean {
    const owner = this.#cluster.view.owner(id);
    return owner !== undefined && owner.host !== this.#cluster.host;
  }

  /** Whether this host owns the machine, whether it knows that machine yet or not. */
  isOwn(id: string): boolean {
    return this.#cluster.view.owner(id)?.host === this.#cluster.host;
  }

  /** A request needs the machine, and is not sent there. */
  wake(id: string): void {
    const row = this.#rows.get(id);
    if (row !== undefined) this.#wake(row);
  }

  /** Calls `listener` when something about a machine has changed. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  #hostsChanged(hosts: ReadonlySet<string>): void {
    for (const { id, host } of this.#cluster.view.machines()) if (hosts.has(host)) this.#look(id);
  }

  #look(id: string): void {
    const { view, host } = this.#cluster;
    const owner = view.owner(id);
    const elsewhere = owner !== undefined && owner.host !== host ? owner : undefined;
    // Also what an earlier owner published: until the new one does, it says how the machine is reached.
    const published = view.value(`${KEYS.states}${id}`) as PublishedMachine | undefined;
    const row = elsewhere && remoteRow(elsewhere, published, view.host(elsewhere.host));
    const before = this.#rows.get(id);
    if (row === undefined) this.#rows.delete(id);
    else this.#rows.set(id, row);
    // Whose it is matters too: this host's own record counts again.
    if (row === undefined ? before === undefined && elsewhere === undefined : same(before, row)) return;
    for (const listener of this.#listeners) listener(id, row);
  }
}

function same(before: TableMachine | undefined, row: TableMachine): boolean {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(row);
}
