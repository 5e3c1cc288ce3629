/** What machines call the apps of their network. */
import type { AppRecord } from "@hibernaut/domain/machine";
import type { Store } from "@hibernaut/store";
import type { Neighbour, Neighbours } from "./zone.ts";

interface NeighboursOptions {
  store: { apps: Pick<Store["apps"], "get" | "inNetwork">; machines: Pick<Store["machines"], "list"> };
  /** Returns the app of the machine that has an address. */
  appAt(address: string): string | undefined;
  /** For tests: milliseconds of a steady clock. */
  now?(): number;
}

/**
 * How long what was looked up is used again, in milliseconds. A machine may ask thousands of times a second, and the answer takes
 * reading every app of its network; a new name is found after this at the latest.
 */
const KEPT_MS = 500;

interface Kept<T> {
  value: T;
  until: number;
}

/** Looks up each network at most twice a second, however often machines ask. */
export class NetworkNames {
  readonly #options: NeighboursOptions;
  readonly #now: () => number;
  /** The network of each app that asked. */
  readonly #networks = new Map<string, Kept<string | undefined>>();
  readonly #names = new Map<string, Kept<Neighbours>>();

  constructor(options: NeighboursOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Returns the apps that the machine with this address shares a network with. Undefined if it shares none. */
  of(asker: string): Neighbours | undefined {
    const { store, appAt } = this.#options;
    const app = appAt(asker);
    if (app === undefined) return undefined;
    const network = this.#kept(this.#networks, app, () => store.apps.get(app)?.network?.name);
    return network === undefined ? undefined : this.#kept(this.#names, network, () => this.#read(network));
  }

  #read(network: string): Neighbours {
    const { apps } = this.#options.store;
    const names = new Map<string, AppRecord>();
    // An app's own name comes before another's alias.
    const all = apps.inNetwork(network);
    for (const app of all) for (const alias of app.network?.aliases ?? []) names.set(alias, app);
    for (const app of all) names.set(app.name, app);
    const found = new Map<string, Neighbour>();
    return {
      find: (name) => {
        const app = names.get(name);
        if (app === undefined) return undefined;
        const neighbour = found.get(app.name) ?? this.#neighbour(app);
        found.set(app.name, neighbour);
        return neighbour;
      },
    };
  }

  /** One whose machines are all without services is found at them. One without a machine here may have some on another host. */
  #neighbour({ name: app, network }: AppRecord): Neighbour {
    const machines = this.#options.store.machines.list(app);
    const hasServices = machines.length === 0 || machines.some(({ config }) => (config.services ?? []).length > 0);
    return { app, ...(hasServices && network !== undefined && { address: network.address }) };
  }

  #kept<T>(all: Map<string, Kept<T>>, key: string, read: () => T): T {
    const known = all.get(key);
    if (known !== undefined && known.until > this.#now()) return known.value;
    for (const [each, { until }] of all) if (until <= this.#now()) all.delete(each);
    const value = read();
    all.set(key, { value, until: this.#now() + KEPT_MS });
    return value;
  }
}
