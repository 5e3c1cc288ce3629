/** Ports at which the proxy takes TCP connections: pure rules. */
import type { MachineConfig } from "../../domain/config.ts";

/** A port of the proxy, and where it leads in the machine. */
export interface TcpPort {
  port: number;
  internal: number;
  /** Whether a connection that is open, but silent, lets the machine sleep. Absent: it does not. */
  quiet?: true;
}

/** Returns the TCP ports of a machine's services. */
export function tcpPortsOf({ services = [] }: Pick<MachineConfig, "services">): TcpPort[] {
  return services.flatMap(({ ports = [], internal_port: internal, idle }) =>
    ports.map(({ port }) => ({ port, internal, ...(idle === "quiet" && { quiet: true as const }) })),
  );
}

/** Returns which app each port belongs to. The platform gives a port to one app only. */
export function portOwners(
  machines: readonly { row: { app: string; tcp?: readonly TcpPort[] } }[],
): ReadonlyMap<number, string> {
  return new Map(machines.flatMap(({ row }) => (row.tcp ?? []).map(({ port }) => [port, row.app])));
}

/** Returns where a port of the proxy leads in the machine. Undefined if it does not lead there. */
export function tcpPortOf(tcp: readonly TcpPort[] | undefined, port: number): TcpPort | undefined {
  return tcp?.find((one) => one.port === port);
}
