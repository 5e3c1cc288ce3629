/** Ports at which the proxy takes TCP connections: pure rules. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { type ProxyProtocolVersion, type TlsHandler, tlsHandlerOf } from "@hibernaut/domain/tcp-handlers";

/**
 * From this number on, a port is one of an app's own address in its network, where the rest is its number: that it leads into
 * the app does not mean that anybody outside may use it.
 */
const OWN_ADDRESS = 65_536;

/** A port of the proxy, or of the app's own address, and where it leads in the machine. */
export interface TcpPort {
  /** One of the app's own address is written as {@link ownPort} has it. */
  port: number;
  internal: number;
  /** Whether a connection that is open, but silent, lets the machine sleep. Absent: it does not. */
  quiet?: true;
  /** What happens with TLS. Absent: nothing, the connection is taken as it is. */
  tls?: TlsHandler;
  /** The header of the PROXY protocol that the app gets first. Absent: none. */
  proxyProtocol?: ProxyProtocolVersion;
}

/** The apps that have a port, and what each does with TLS there. */
export type PortApps = ReadonlyMap<string, TlsHandler | undefined>;

/** Returns the TCP ports of a machine's services. */
export function tcpPortsOf({ services = [] }: Pick<MachineConfig, "services">): TcpPort[] {
  return services.flatMap(({ ports = [], internal_port: internal, idle }) =>
    ports.map(({ port, handlers = [], proxy_proto_options: options }) => {
      const tls = tlsHandlerOf(handlers);
      return {
        ...{ port, internal },
        ...(idle === "quiet" && { quiet: true as const }),
        ...(tls !== undefined && { tls }),
        ...(handlers.includes("proxy_proto") && { proxyProtocol: options?.version ?? "v1" }),
      };
    }),
  );
}

/** How a port of an app's own address is written where ports of the proxy could be meant. */
export function ownPort(port: number): number {
  return port + OWN_ADDRESS;
}

/** Whether a port is one of an app's own address. */
export function isOwnPort(port: number): boolean {
  return port >= OWN_ADDRESS;
}

/** Returns the number that clients know a port by. */
export function numberOf(port: number): number {
  return port % OWN_ADDRESS;
}

/** An app that has more ports at its own address than this has something wrong with it: each is a socket of the platform. */
const MOST_OWN_PORTS = 64;

/**
 * Returns the ports that a machine's services have at the app's own address: those that they have at the proxy, and, unless one
 * of those has the number, the ones at which they listen. What the proxy does with TLS is for clients from outside.
 */
export function ownPortsOf(config: Pick<MachineConfig, "services">): TcpPort[] {
  const published = tcpPortsOf(config).map(({ tls: _tls, ...port }) => port);
  const listening = (config.services ?? []).map(({ internal_port: internal, idle }): TcpPort => {
    const known = published.find((one) => one.internal === internal);
    return { ...(idle === "quiet" && { quiet: true }), ...known, internal, port: internal };
  });
  const byNumber = new Map([...listening, ...published].map((one) => [one.port, one]));
  return [...byNumber.values()].slice(0, MOST_OWN_PORTS).map((one) => ({ ...one, port: ownPort(one.port) }));
}

/** Returns which apps each port of the proxy belongs to. The platform gives a port to one app, or to apps that handle TLS there. */
export function portOwners(
  machines: readonly { row: { app: string; tcp?: readonly TcpPort[] } }[],
): ReadonlyMap<number, PortApps> {
  const owners = new Map<number, Map<string, TlsHandler | undefined>>();
  for (const { row } of machines)
    for (const { port, tls } of row.tcp ?? []) {
      if (isOwnPort(port)) continue;
      const apps = owners.get(port) ?? new Map<string, TlsHandler | undefined>();
      // While a deploy changes the machines of an app, some differ: nobody gets in without TLS then.
      owners.set(port, apps.set(row.app, tls ?? apps.get(row.app)));
    }
  return owners;
}

/** Returns the ports that each app has at its own address. */
export function ownPortsByApp(
  machines: readonly { row: { app: string; tcp?: readonly TcpPort[] } }[],
): ReadonlyMap<string, ReadonlySet<number>> {
  const all = new Map<string, Set<number>>();
  for (const { row } of machines)
    for (const { port } of row.tcp ?? []) {
      if (!isOwnPort(port)) continue;
      const ports = all.get(row.app) ?? new Set<number>();
      if (ports.size < MOST_OWN_PORTS) all.set(row.app, ports.add(port));
    }
  return all;
}

/** Returns the app that gets every connection to the port, whatever its client says. Undefined if TLS decides. */
export function plainOwner(apps: PortApps): string | undefined {
  for (const [app, tls] of apps) if (tls === undefined) return app;
  return undefined;
}

/** Returns where a port of the proxy leads in the machine. Undefined if it does not lead there. */
export function tcpPortOf(tcp: readonly TcpPort[] | undefined, port: number): TcpPort | undefined {
  return tcp?.find((one) => one.port === port);
}

/** What the app's own machines call it: `<app>.flycast`. */
const INSIDE = ".flycast";

/**
 * Returns the app that a client of TLS gets, by the hostname that it names. One that names none gets the port's only app.
 *
 * @param appFor returns the app that answers for a hostname
 */
export function tlsOwner(
  apps: PortApps,
  serverName: string | undefined,
  appFor: (hostname: string) => string | undefined,
): string | undefined {
  const [sole] = apps.keys();
  if (serverName === undefined) return apps.size === 1 ? sole : undefined;
  const app = serverName.endsWith(INSIDE) ? serverName.slice(0, -INSIDE.length) : appFor(serverName);
  return app !== undefined && apps.has(app) ? app : undefined;
}
