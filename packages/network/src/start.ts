/** The machines' network as the platform starts it. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { controlPorts, type Listens, publicPorts } from "@hibernaut/domain/own-ports";
import type { Settings } from "@hibernaut/settings";
import { type Endpoint, type KnownMachine, networkMachine, type Refused } from "./contract.ts";
import { type OpenedNetwork, openNetwork } from "./open.ts";

interface StartedNetwork extends Omit<OpenedNetwork, "offer"> {
  /**
   * Closes a port that the system chose to machines, and limits what clients open there, once its URL is known. One that the
   * settings name is known already.
   */
  opened(what: ControlListen, url: string): Promise<void>;
  /** Limits what clients open at these ports of proxies, and no others, in addition to those that the settings name. */
  proxied(ports: readonly number[]): Promise<void>;
}

/** What listens where machines must not come, on ports that may be 0. */
type ControlListen = "apiListen" | "sandboxListen" | "flyListen";

interface StartOptions {
  machines: readonly MachineRecord[];
  /** Returns what is the same for apps whose machines may reach each other. */
  groupOf(app: string): string;
  /** Ids of machines whose guests are running. */
  alive: ReadonlySet<string>;
  /** Machines may lose their memory if the settings ask for another network than theirs. */
  dropSnapshots: boolean;
  /** Where a cluster is controlled from. Undefined on a host alone. */
  controlPlane: ControlPlane | undefined;
  /** Receives what machines were kept from connecting to by their own rules. */
  onRefused(refused: readonly Refused[]): void;
  log: { warn(fields: object, message: string): void };
}

/** The addresses of what controls a cluster, which change with its hosts. */
interface ControlPlane {
  addresses(): Promise<readonly Endpoint[]>;
  /** Calls `listener` with the addresses whenever they have changed. Returns a function that ends that. */
  follow(listener: (addresses: readonly Endpoint[]) => void): () => void;
}

/** Opens the network that the settings ask for, with the machines that were in it before. */
export async function startNetwork(
  settings: Settings,
  { machines, groupOf, alive, dropSnapshots, controlPlane, onRefused, log }: StartOptions,
): Promise<StartedNetwork> {
  let listens: Listens = settings;
  const portsOf = () => controlPorts(listens, controlPlane !== undefined);
  let ofProxies: readonly number[] = [];
  const clientPortsOf = () => [...new Set([...publicPorts(listens), ...ofProxies])].sort((a, b) => a - b);
  const control = {
    controlPorts: portsOf(),
    controlAddresses: (await controlPlane?.addresses()) ?? [],
  };
  const network = await openNetwork(settings.network, {
    dataDir: settings.dataDir,
    subnet: settings.networkSubnet,
    machines: machines.map((record) => knownMachine(record, alive)),
    ...{ dropSnapshots, groupOf },
    ...control,
    blocked: settings.blockedNetworks,
    limits: { connections: settings.networkConnections, perSecond: settings.networkConnectionRate },
    clients: {
      perSecond: settings.connectionRatePerAddress,
      exempt: [...settings.proxyTrusted, ...settings.proxyProtocolFrom],
    },
    clientPorts: clientPortsOf(),
    onTrouble: (message) => log.warn({}, message),
    onRefused,
  });
  if (network.fallback && process.getuid?.() === 0)
    log.warn({}, `the machines' network is user mode, and stays it once there are machines: ${network.reason}`);
  if (network.network.mode === "user" && controlPlane !== undefined)
    log.warn(
      {},
      "machines in user mode reach the cluster's etcd and hosts as this host does; only a bridge keeps them away (docs/network.md)",
    );
  const end = controlPlane?.follow((addresses) => {
    control.controlAddresses = addresses;
    network
      .protect(control)
      .catch((err: unknown) => log.warn({ err }, "the cluster's addresses could not be closed to machines"));
  });
  return {
    ...network,
    async opened(what, url) {
      if (settings[what]?.port !== 0) return;
      listens = { ...listens, [what]: { port: Number(new URL(url).port) } };
      control.controlPorts = portsOf();
      await network.protect(control);
      await network.offer(clientPortsOf());
    },
    async proxied(ports) {
      const before = String(clientPortsOf());
      ofProxies = ports;
      if (String(clientPortsOf()) !== before) await network.offer(clientPortsOf());
    },
    close() {
      end?.();
      return network.close();
    },
  };
}

/** Returns what a network needs to know about a machine, and whether the machine has memory to lose. */
export function knownMachine(record: MachineRecord, alive: ReadonlySet<string>): KnownMachine {
  const { id, snapshot, capturing } = record;
  // A suspend that the end of a platform interrupted may have published its snapshot.
  const asleep = snapshot !== null || (capturing !== null && !alive.has(id));
  const memory = asleep ? "asleep" : alive.has(id) ? "awake" : undefined;
  return { ...networkMachine(record), ...(memory && { memory }) };
}
