/** The machines' network as the platform starts it. */
import type { MachineRecord } from "../domain/machine.ts";
import type { Settings } from "../settings.ts";
import type { KnownMachine } from "./contract.ts";
import { type OpenedNetwork, openNetwork } from "./open.ts";

interface StartedNetwork extends OpenedNetwork {
  /** Protects the API's port, once it is known, from the machines. */
  protectApi(port: number): Promise<void>;
}

interface StartOptions {
  machines: readonly MachineRecord[];
  /** Ids of machines whose guests are running. */
  alive: ReadonlySet<string>;
  /** Machines may lose their memory if the settings ask for another network than theirs. */
  dropSnapshots: boolean;
  log: { warn(fields: object, message: string): void };
}

/** Opens the network that the settings ask for, with the machines that were in it before. */
export async function startNetwork(
  settings: Settings,
  { machines, alive, dropSnapshots, log }: StartOptions,
): Promise<StartedNetwork> {
  // These ports control or show the platform itself: nothing for the apps in its machines.
  const controlPorts = (apiPort: number) =>
    [apiPort, settings.proxyMetricsListen?.port ?? 0].filter((port) => port !== 0);
  const network = await openNetwork(settings.network, {
    dataDir: settings.dataDir,
    subnet: settings.networkSubnet,
    machines: machines.map((record) => knownMachine(record, alive)),
    dropSnapshots,
    controlPorts: controlPorts(settings.apiListen.port),
    blocked: settings.blockedNetworks,
    limits: { connections: settings.networkConnections, perSecond: settings.networkConnectionRate },
    onTrouble: (message) => log.warn({}, message),
  });
  if (network.fallback && process.getuid?.() === 0)
    log.warn({}, `the machines' network is user mode, and stays it once there are machines: ${network.reason}`);
  return { ...network, protectApi: (port) => network.protect(controlPorts(port)) };
}

/** Returns what a network needs to know about a machine, and whether the machine has memory to lose. */
export function knownMachine(record: MachineRecord, alive: ReadonlySet<string>): KnownMachine {
  const { id, app, address, snapshot, capturing } = record;
  // A suspend that the end of a platform interrupted may have published its snapshot.
  const asleep = snapshot !== null || (capturing !== null && !alive.has(id));
  const memory = asleep ? "asleep" : alive.has(id) ? "awake" : undefined;
  return { id, app, address, ...(memory && { memory }) };
}
