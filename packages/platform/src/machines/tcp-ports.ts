/** Ports for TCP connections: each belongs to one app of the platform. */
import type { MachineConfig } from "../domain/config.ts";
import { HibernautError } from "../domain/errors.ts";
import type { MachineDependencies } from "./dependencies.ts";

/**
 * Throws `already_exists` when a port of the configuration belongs to another app, and `invalid_argument` when the
 * platform listens on it itself.
 */
export function requireFreePorts(
  { store, ownPorts }: Pick<MachineDependencies, "store" | "ownPorts">,
  app: string,
  config: MachineConfig,
): void {
  const wanted = portsOf(config);
  if (wanted.size === 0) return;
  const own = [...wanted].find((port) => ownPorts?.has(port));
  if (own !== undefined)
    throw new HibernautError(
      "invalid_argument",
      `Port ${own} is the platform's own: its API, its proxy or its name server listens there. Choose another port.`,
      { port: own },
    );
  for (const machine of store.machines.list()) {
    if (machine.app === app) continue;
    const taken = [...portsOf(machine.config), ...portsOf(machine.pending?.config)].find((port) => wanted.has(port));
    if (taken === undefined) continue;
    const message = `Port ${taken} belongs to app ${machine.app}: a TCP port leads to one app. Choose another port, or remove it there.`;
    throw new HibernautError("already_exists", message, { port: taken, app_name: machine.app });
  }
}

function portsOf(config: MachineConfig | undefined): Set<number> {
  return new Set((config?.services ?? []).flatMap(({ ports = [] }) => ports.map(({ port }) => port)));
}
