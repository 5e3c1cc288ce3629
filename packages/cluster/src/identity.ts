/** The certificates of a cluster: its authority, which every host has, and what the authority signs for each host. */
import { makeAuthority, type Pair, sign } from "@hibernaut/lib/certificates";

/** The authority lives as long as its cluster: there is nobody who would sign another one. */
const AUTHORITY_DAYS = 30 * 365;
const HOST_DAYS = 365;

/** Makes the authority of a new cluster, or with `of` that of its etcd. */
export function makeClusterAuthority(clusterId: string, of = ""): Promise<Pair> {
  return makeAuthority(`Hibernaut cluster ${clusterId}${of}`, AUTHORITY_DAYS);
}

/**
 * Signs a host's certificate, for both sides of a connection. Other hosts check that it has the host's name.
 *
 * @param publicKey PEM
 */
export function signHost(authority: Pair, host: string, publicKey: string, now = Date.now()): Promise<string> {
  return sign(authority, { name: host, names: [host], publicKey, days: HOST_DAYS }, now);
}
