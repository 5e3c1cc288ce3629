/** The names of the platform: what `.internal` holds. Pure. */
import { HOST_NAME } from "../network/contract.ts";

const DOMAIN = "internal";

interface ZoneMachine {
  id: string;
  address: string;
}

export interface Zone {
  /** The host's address in the machines' network. */
  gateway: string;
  /** The app's running machines, or undefined when there is no such app. */
  running(app: string): ZoneMachine[] | undefined;
}

/**
 * The IPv4 addresses of a name: an empty list when it has none at present, undefined when there is no such name.
 * `"elsewhere"` when the name is not ours to answer.
 *
 * `<app>.internal` is every running machine of the app, `<machine id>.vm.<app>.internal` one of them.
 */
export function lookUp(zone: Zone, name: string): string[] | undefined | "elsewhere" {
  const lower = name.toLowerCase().replace(/\.$/, "");
  const labels = lower.split(".");
  if (labels.at(-1) !== DOMAIN) return "elsewhere";
  if (lower === HOST_NAME) return [zone.gateway];
  if (labels.length === 2) return zone.running(labels[0] ?? "")?.map(({ address }) => address);
  const [id, vm, app = ""] = labels;
  if (labels.length !== 4 || vm !== "vm") return undefined;
  const found = zone.running(app)?.filter((machine) => machine.id === id);
  return found !== undefined && found.length > 0 ? found.map(({ address }) => address) : undefined;
}
