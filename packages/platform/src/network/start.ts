/** The machines' network as the platform starts it. */
import type { MachineRecord } from "../domain/machine.ts";
import type { Settings } from "../settings.ts";
import type { KnownMachine } from "./contract.ts";
import { type OpenedNetwork, openNetwork } from "./open.ts";

interface StartedNetwork extends OpenedNetwork {
  /** Protects the API's port, once it is known, from the machines. */
  protectApi(port: number): Promise<void>;
}

/** Opens the network that the settings ask for, with the machines that were in it before. */
export async function startNetwork(
  settings: Settings,
  machines: readonly MachineRecord[],
  log: { warn(fields: object, message: string): void },
): Promise<StartedNetwork> {
  // These ports control or show the platform itself: nothing for the apps in its machines.
  const controlPorts = (apiPort: number) =>
    [apiPort, settings.proxyMetricsListen?.port ?? 0].filter((port) => port !== 0);
  const network = await openNetwork(settings.network, {
    dataDir: settings.dataDir,
    subnet: settings.networkSubnet,
    machines: machines.map(knownMachine),
    controlPorts: controlPorts(settings.apiListen.port),
    onTrouble: (message) => log.warn({}, message),
  });
  for (const note of network.notes) log.warn({}, note);
  return { ...network, protectApi: (port) => network.protect(controlPorts(port)) };
}

/** Returns what a network needs to know about a machine, and whether the machine has memory to lose. */
function knownMachine({ id, app, address, state, snapshot }: MachineRecord): KnownMachine {
  const empty = state === "created" || state === "stopped" || state === "failed" || state === "destroying";
  const memory = snapshot !== null ? "asleep" : empty ? undefined : "awake";
  return { id, app, address, ...(memory && { memory }) };
}
