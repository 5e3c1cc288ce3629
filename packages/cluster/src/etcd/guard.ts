/** Whether strangers can write to a cluster's etcd, as far as its URLs and certificates say. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { DirectoryPlace } from "../home.ts";

type EtcdPlace = Extract<DirectoryPlace, { etcd: string[] }>;

/** Hostnames of URLs that only programs of this computer reach. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** The URLs at which everyone in the network can write to etcd. */
function openUrls({ etcd }: EtcdPlace): string[] {
  return etcd.filter((url) => {
    const { protocol, hostname } = new URL(url);
    return protocol === "http:" && !LOOPBACK.test(hostname);
  });
}

/**
 * Throws `failed_precondition` when everyone in the network can write to etcd, unless that was allowed: for this cluster
 * with `--insecure-etcd`, or for this host by the setting.
 */
export function requireGuarded(place: DirectoryPlace, allowed = false): void {
  const [url] = "etcd" in place && !place.insecure && !allowed ? openUrls(place) : [];
  if (url === undefined) return;
  throw new HibernautError(
    "failed_precondition",
    `etcd at ${url} is not encrypted and asks nobody who they are: anyone who reaches it, also from a machine of another host, can take the cluster apart. Let it speak TLS and ask for client certificates, as docs/cluster.md shows: \`hibernaut cluster init\` makes them for URLs that begin with https://. In a network of your hosts alone, allow it with --insecure-etcd, or on a host that is a member with HIBERNAUT_INSECURE_ETCD=on.`,
    { url },
  );
}

/** How well etcd is guarded, for `hibernaut doctor`. */
export function guardOf(place: DirectoryPlace): { guarded: boolean; found: string } {
  if ("local" in place) return { guarded: true, found: `the directory is the file ${place.local}` };
  const urls = place.etcd.join(", ");
  if (openUrls(place).length > 0)
    return { guarded: false, found: `etcd at ${urls} is not encrypted: anyone who reaches it can change the cluster` };
  if (place.etcd.some((url) => url.startsWith("http:")))
    return { guarded: true, found: `etcd at ${urls}, for this computer only: its programs can change the cluster` };
  return place.tls?.cert === undefined
    ? {
        guarded: false,
        found: `etcd at ${urls} asks hosts for no certificate: anyone who reaches it can change the cluster`,
      }
    : { guarded: true, found: `etcd at ${urls}, with certificates on both sides` };
}
