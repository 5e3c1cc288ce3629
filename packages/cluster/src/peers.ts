/** How other hosts of the cluster are reached: TLS with certificates of the cluster's authority on both sides. */
import { X509Certificate } from "node:crypto";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import { HibernautError } from "@hibernaut/domain/errors";
import { keyFingerprint, type Pair } from "@hibernaut/lib/certificates";
import type { PeerService, Peers, View } from "./cluster.ts";

/** What ALPN chooses between at the peer port. `join` alone is for hosts that have no certificate yet. */
export const ALPN: Record<PeerService | "join", string> = {
  api: "hib-api",
  proxy: "hib-proxy",
  tcp: "hib-tcp",
  peer: "hib-peer",
  join: "hib-join",
};

interface PeersOptions {
  view: View;
  /** PEM, of the authority. */
  authority: string;
  /** This host's certificate, which is renewed now and then. */
  identity(): Pair;
}

export function clusterPeers({ view, authority, identity }: PeersOptions): Peers {
  return {
    target(name, service) {
      const host = view.host(name);
      if (host?.up === undefined) throw hostAway(name, host !== undefined);
      const { fingerprint } = host.member;
      const tls = tlsTo({ name, fingerprint }, service, { authority, identity: identity() });
      return { ...splitAddress(host.up.peer), tls };
    },
  };
}

/**
 * Returns how to speak TLS with a service of a host. The host has to have the key that the directory says it has: others
 * have the authority, too, also one that was removed.
 *
 * @param own the cluster's authority, PEM, and this host's certificate
 */
export function tlsTo(
  { name, fingerprint }: { name: string; fingerprint: string },
  service: PeerService,
  own: { authority: string; identity: Pair },
): ConnectionOptions {
  const { certificate, key } = own.identity;
  return {
    ...{ ca: own.authority, cert: certificate, key },
    servername: name,
    checkServerIdentity: (servername, shown) =>
      checkServerIdentity(servername, shown) ?? requireKey(name, fingerprint, shown.raw),
    ALPNProtocols: [ALPN[service]],
    minVersion: "TLSv1.3",
  };
}

/** The error of a host that has another key than the directory says. */
function requireKey(name: string, fingerprint: string, certificate: Buffer): Error | undefined {
  if (keyFingerprint(new X509Certificate(certificate)) === fingerprint) return undefined;
  return new Error(`what answers as host ${name} has another key than that host`);
}

/** Returns host and port of `host:port` or `[::1]:port`. Throws a TypeError when it is neither. */
export function splitAddress(address: string): { host: string; port: number } {
  const { hostname, port } = new URL(`tcp://${address}`);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
}

export function joinAddress({ host, port }: { host: string; port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function hostAway(host: string, isMember: boolean): HibernautError {
  const why = isMember
    ? `Host ${host} is away: it has not renewed its lease. Its machines are available again when it returns; \`hibernaut cluster status\` shows which hosts are up.`
    : `There is no host ${host} in the cluster. \`hibernaut cluster status\` lists its hosts.`;
  return new HibernautError("host_unreachable", why, { host });
}
