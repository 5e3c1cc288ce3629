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
}

/**
 * Returns the IPv4 addresses of a name: an empty list when it currently has none, and undefined when it does not exist.
 * Returns `"elsewhere"` when the name is not below `.internal` or `.flycast`.
 *
 * `<app>.internal` stands for all running machines of the app, `<machine id>.vm.<app>.internal` for one of them, and
 * `<app>.flycast` for the proxy's ports of the app.
 */
export function lookUp(zone: Zone, name: string): string[] | undefined | "elsewhere" {
  const lower = name.toLowerCase().replace(/\.$/, "");
  const labels = lower.split(".");
  if (labels.at(-1) === PROXY_DOMAIN)
    return labels.length === 2 && zone.hasPorts(labels[0] ?? "") ? [zone.gateway] : undefined;
  if (labels.at(-1) !== DOMAIN) return "elsewhere";
  if (lower === HOST_NAME) return [zone.gateway];
  if (labels.length === 2) return zone.running(labels[0] ?? "")?.map(({ address }) => address);
  const [id, vm, app = ""] = labels;
  if (labels.length !== 4 || vm !== "vm") return undefined;
  const found = zone.running(app)?.filter((machine) => machine.id === id);
  return found !== undefined && found.length > 0 ? found.map(({ address }) => address) : undefined;
}
