/** Ports at which the proxy takes TCP connections: pure rules. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { type ProxyProtocolVersion, type TlsHandler, tlsHandlerOf } from "@hibernaut/domain/tcp-handlers";

/** A port of the proxy, and where it leads in the machine. */
export interface TcpPort {
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

/** Returns which apps each port belongs to. The platform gives a port to one app, or to apps that handle TLS there. */
export function portOwners(
  machines: readonly { row: { app: string; tcp?: readonly TcpPort[] } }[],
): ReadonlyMap<number, PortApps> {
  const owners = new Map<number, Map<string, TlsHandler | undefined>>();
  for (const { row } of machines)
    for (const { port, tls } of row.tcp ?? []) {
      const apps = owners.get(port) ?? new Map<string, TlsHandler | undefined>();
      // While a deploy changes the machines of an app, some differ: nobody gets in without TLS then.
      owners.set(port, apps.set(row.app, tls ?? apps.get(row.app)));
    }
  return owners;
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
