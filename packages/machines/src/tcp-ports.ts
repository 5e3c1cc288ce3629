/** Ports for TCP connections: each belongs to one app of the platform, or to apps that the client's TLS tells apart. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import { tlsHandlerOf } from "@hibernaut/domain/tcp-handlers";
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
  const own = [...wanted.keys()].find((port) => ownPorts?.has(port));
  if (own !== undefined)
    throw new HibernautError(
      "invalid_argument",
      `Port ${own} is the platform's own: its API, its proxy, its name server, its port for other hosts or etcd listens there. Choose another port.`,
      { port: own },
    );
  for (const machine of store.machines.list()) {
    if (machine.app === app) continue;
    const theirs = [...portsOf(machine.config), ...portsOf(machine.pending?.config)];
    const taken = theirs.find(([port, shared]) => wanted.has(port) && !(shared && wanted.get(port)));
    if (taken === undefined) continue;
    const [port, shared] = taken;
    throw new HibernautError("already_exists", takenMessage(port, machine.app, shared), {
      port,
      app_name: machine.app,
    });
  }
}

function takenMessage(port: number, app: string, shared: boolean): string {
  if (shared)
    return `Port ${port} belongs to app ${app}, which shares it only with apps that handle TLS there. Add the handler tls, pg_tls or tls_passthrough, or choose another port.`;
  return `Port ${port} belongs to app ${app}: a TCP port leads to one app, unless all its apps handle TLS there. Choose another port, or remove it there.`;
}

/** Returns the ports, and whether each can be shared: its clients name a hostname, which belongs to one app. */
function portsOf(config: MachineConfig | undefined): Map<number, boolean> {
  const ports = (config?.services ?? []).flatMap(({ ports: some = [] }) => some);
  return new Map(ports.map(({ port, handlers = [] }) => [port, tlsHandlerOf(handlers) !== undefined]));
}
