/** The names below `.internal` and `.flycast`. Pure. */
import { HOST_NAME } from "@hibernaut/network";

const DOMAIN = "internal";
/** As on Fly: names that lead to the proxy, which wakes what sleeps behind them. */
const PROXY_DOMAIN = "flycast";

interface ZoneMachine {
  id: string;
  address: string;
}

/** What the names are answered from. */
export interface Zone {
  /** The host's address in the machines' network. */
  gateway: string;
  /** Lists the app's running machines. Undefined when there is no such app. */
  running(app: string): ZoneMachine[] | undefined;
  /** Whether the proxy takes TCP connections for the app. */
  hasPorts(app: string): boolean;
  /** What the machine with this address calls other apps, if its app shares a network. */
  neighboursOf(asker: string): Neighbours | undefined;
}

/** The apps of a network. */
export interface Neighbours {
  /** Returns the app that is called so. */
  find(name: string): Neighbour | undefined;
}

export interface Neighbour {
  app: string;
  /** Its own address, at which a connection wakes it. Absent while no machine of it has a service. */
  address?: string;
}

/**
 * Returns the IPv4 addresses of a name: an empty list when it currently has none, and undefined when it does not exist.
 * Returns `"elsewhere"` when the name is not below `.internal` or `.flycast`, and no app of the asker's network is called so.
 *
 * `<app>.internal` stands for all running machines of the app, `<machine id>.vm.<app>.internal` for one of them, and
 * `<app>.flycast` for the proxy's ports of the app. In a network, an app's name, its aliases and `<app>.flycast` stand for its
 * own address, or for its running machines if they have no service: nothing else could be told what to wake.
 *
 * @param asker the address of the machine that asks
 */
export function lookUp(zone: Zone, name: string, asker: string): string[] | undefined | "elsewhere" {
  const lower = name.toLowerCase().replace(/\.$/, "");
  const labels = lower.split(".");
  const neighbours = labels.at(-1) === DOMAIN ? undefined : zone.neighboursOf(asker);
  const inside = labels.at(-1) === PROXY_DOMAIN && labels.length === 2 ? labels[0] : lower;
  const neighbour = neighbours?.find(inside ?? lower);
  if (neighbour !== undefined)
    return neighbour.address === undefined ? addressesOf(zone, neighbour.app) : [neighbour.address];
  if (labels.at(-1) === PROXY_DOMAIN)
    return labels.length === 2 && zone.hasPorts(labels[0] ?? "") ? [zone.gateway] : undefined;
  if (labels.at(-1) !== DOMAIN) return "elsewhere";
  if (lower === HOST_NAME) return [zone.gateway];
  if (labels.length === 2) return addressesOf(zone, labels[0] ?? "");
  const [id, vm, app = ""] = labels;
  if (labels.length !== 4 || vm !== "vm") return undefined;
  const found = zone.running(app)?.filter((machine) => machine.id === id);
  return found !== undefined && found.length > 0 ? found.map(({ address }) => address) : undefined;
}

function addressesOf(zone: Zone, app: string): string[] | undefined {
  return zone.running(app)?.map(({ address }) => address);
}
