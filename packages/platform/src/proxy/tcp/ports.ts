/** Ports at which the proxy takes TCP connections: pure rules. */
import type { MachineConfig } from "../../domain/config.ts";

/** A port of the proxy, and where it leads in the machine. */
export interface TcpPort {
  port: number;
  internal: number;
}

/** Returns the TCP ports of a machine's services. */
export function tcpPortsOf({ services = [] }: Pick<MachineConfig, "services">): TcpPort[] {
  return services.flatMap(({ ports = [], internal_port: internal }) => ports.map(({ port }) => ({ port, internal })));
}

/** Returns which app each port belongs to. The platform gives a port to one app only. */
export function portOwners(
  machines: readonly { row: { app: string; tcp?: readonly TcpPort[] } }[],
): ReadonlyMap<number, string> {
  return new Map(machines.flatMap(({ row }) => (row.tcp ?? []).map(({ port }) => [port, row.app])));
}

/** Returns the port in the machine to which a port of the proxy leads. Undefined if it leads to another machine. */
export function internalPort(tcp: readonly TcpPort[] | undefined, port: number): number | undefined {
  return tcp?.find((one) => one.port === port)?.internal;
}
