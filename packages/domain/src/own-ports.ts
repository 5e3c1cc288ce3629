/** The ports that no app gets, because the platform or what it relies on listens there. Pure. */

/** Where the name server for machines listens. */
export const DNS_PORT = 53;

/** Where etcd listens, for its clients and for its own hosts: a program there could pose as the cluster's directory. */
const ETCD_PORTS = [2379, 2380];

interface At {
  port: number;
}

/** Where the platform listens, as the settings have it. */
export interface Listens {
  apiListen: At;
  proxyListen: At;
  proxyTlsListen?: At | undefined;
  proxyMetricsListen?: At | undefined;
  peerListen: At;
  sandboxListen?: At | undefined;
  flyListen?: At | undefined;
}

/** Returns the ports that no TCP service can have. A port that the system chooses is not known yet. */
export function ownPorts(settings: Listens): ReadonlySet<number> {
  const { proxyListen, proxyTlsListen } = settings;
  const listens = [proxyListen.port, proxyTlsListen?.port ?? 0];
  const ports = [DNS_PORT, ...ETCD_PORTS, ...listens, ...controlPorts(settings, true)];
  return new Set(ports.filter((port) => port > 0));
}

/** Returns the ports that clients reach, without those of TCP services. Other hosts of a cluster do not count as clients. */
export function publicPorts(settings: Listens): number[] {
  const { proxyListen, proxyTlsListen } = settings;
  const ports = [proxyListen.port, proxyTlsListen?.port ?? 0, ...controlPorts(settings, false)];
  return ports.filter((port) => port > 0);
}

/** Returns the ports that control or show the platform: machines reach none of them. Other hosts come to `peerListen`, if there are any. */
export function controlPorts(
  { apiListen, proxyMetricsListen, sandboxListen, flyListen, peerListen }: Listens,
  isInCluster: boolean,
): number[] {
  const listens = [apiListen, proxyMetricsListen, sandboxListen, flyListen, isInCluster ? peerListen : undefined];
  return listens.flatMap((listen) => listen?.port ?? []).filter((port) => port > 0);
}
