/**
 * The addresses of what controls a cluster: etcd, and the peer ports, APIs and metrics of its hosts. No machine may reach
 * them, on whichever host they are. Pure, except for {@link ControlPlane}, which looks up names.
 */
import { lookup } from "node:dns/promises";
import { isIPv4, isIPv6 } from "node:net";
import type { NetworkInterfaceInfo } from "node:os";
import { abortable } from "@hibernaut/lib/async";
import type { Endpoint } from "@hibernaut/network";
import type { Listen } from "@hibernaut/settings";
import type { ClusterHost, View } from "./cluster.ts";
import { membersOf, peerPortOf } from "./etcd/members.ts";
import type { DirectoryPlace } from "./home.ts";
import { KEYS } from "./keys.ts";
import { splitAddress } from "./peers.ts";

/** How often names are looked up again. */
const LOOK_UP_MS = 60_000;
/** How long a name server may take; the platform's start waits for it. */
const PATIENCE_MS = 3000;
/** How many addresses a host tells of: one with more has them for containers, most likely. */
const MOST_ADDRESSES = 32;
/** Bridges of machines, whose addresses lead to the machine's own host. */
const BRIDGE = /^hib/;

/** A port of a computer, which has an address or a name. */
interface Named {
  host: string;
  port: number;
}

/** Where other computers reach what listens at these places, as `host:port`. Nothing that listens on the loopback only. */
export function reachableAt(
  listens: readonly (Listen | undefined)[],
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]>,
): string[] {
  const own = Object.entries(interfaces)
    .flatMap(([name, all]) => (BRIDGE.test(name) ? [] : (all ?? [])))
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address)
    .toSorted()
    .slice(0, MOST_ADDRESSES);
  return listens
    .filter((listen) => listen !== undefined)
    .filter(({ port }) => port > 0)
    .flatMap(({ host, port }) => hostsOf(host, own).map((each) => `${each}:${port}`));
}

/** IPv6 is left out: machines have none. */
function hostsOf(host: string, own: readonly string[]): readonly string[] {
  if (host === "0.0.0.0" || host === "::") return own;
  return isIPv4(host) && !host.startsWith("127.") ? [host] : [];
}

/** What controls the cluster. `known` has what hosts told that are away. */
export function controlOf(
  place: DirectoryPlace,
  hosts: readonly ClusterHost[],
  known: Map<string, readonly string[]>,
): Named[] {
  for (const { name, up } of hosts) if (up !== undefined) known.set(name, [up.peer, ...(up.control ?? [])]);
  for (const name of known.keys()) if (!hosts.some((host) => host.name === name)) known.delete(name);
  const members = "etcd" in place ? membersOf(place.etcd) : [];
  return [
    ...members.flatMap((member) => [member, { ...member, port: peerPortOf(member) }]),
    ...[...known.values()].flat().flatMap(namedIn),
  ].map(({ host, port }) => ({ host, port }));
}

/** What is not an address leads nowhere. */
function namedIn(text: string): Named[] {
  try {
    return [splitAddress(text)];
  } catch {
    return [];
  }
}

interface ControlPlaneOptions {
  place: DirectoryPlace;
  view: Pick<View, "hosts" | "subscribe">;
  onTrouble(error: unknown, message: string): void;
}

export class ControlPlane {
  readonly #options: ControlPlaneOptions;
  readonly #known = new Map<string, readonly string[]>();
  /** The last addresses of names. */
  readonly #addresses = new Map<string, readonly string[]>();

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
  }

  /** Where it is now. A name that cannot be looked up keeps the addresses that it had. */
  async addresses(): Promise<readonly Endpoint[]> {
    const { place, view } = this.#options;
    const named = controlOf(place, view.hosts(), this.#known);
    const hosts = [...new Set(named.map(({ host }) => host))];
    await Promise.all(hosts.map((host) => this.#lookUp(host)));
    for (const host of this.#addresses.keys()) if (!hosts.includes(host)) this.#addresses.delete(host);
    const all = named.flatMap(({ host, port }) =>
      (this.#addresses.get(host) ?? []).map((address) => ({ address, port })),
    );
    return [...new Map(all.map((each) => [`${each.address}:${each.port}`, each])).entries()]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, endpoint]) => endpoint);
  }

  /** Calls `listener` with the addresses, and again whenever they have changed. Returns a function that ends that. */
  follow(listener: (addresses: readonly Endpoint[]) => void): () => void {
    let last = "";
    let ended = false;
    let looking = Promise.resolve();
    const tell = async (): Promise<void> => {
      const addresses = await this.addresses();
      if (ended || JSON.stringify(addresses) === last) return;
      last = JSON.stringify(addresses);
      listener(addresses);
    };
    const look = () => {
      looking = looking.then(tell).catch((error: unknown) => {
        this.#options.onTrouble(error, "the addresses that machines are kept from are not known");
      });
    };
    const ends = [KEYS.hosts, KEYS.members].map((prefix) => this.#options.view.subscribe(prefix, look));
    const timer = setInterval(look, LOOK_UP_MS).unref();
    look();
    return () => {
      ended = true;
      clearInterval(timer);
      for (const end of ends) end();
    };
  }

  async #lookUp(host: string): Promise<void> {
    if (isIPv6(host)) return;
    if (isIPv4(host)) return void this.#addresses.set(host, [host]);
    try {
      const found = await abortable(lookup(host, { all: true, family: 4 }), AbortSignal.timeout(PATIENCE_MS));
      this.#addresses.set(
        host,
        found.map(({ address }) => address),
      );
    } catch (error) {
      if (!this.#addresses.has(host))
        this.#options.onTrouble(error, `the address of ${host} is not known, so machines are not kept from it`);
    }
  }
}
