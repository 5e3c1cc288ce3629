/** The members of an etcd that is made for a cluster, and how each is started. Pure. */
import { isIP } from "node:net";
import { join } from "node:path";

/** How the files of a member are called, in a directory of its own. */
export const MEMBER_FILES = { ca: "ca.crt", certificate: "member.crt", key: "member.key" } as const;
/** Without it, etcd keeps every change until it is full. */
const COMPACTION = "1h";

export interface EtcdMember {
  name: string;
  /** A hostname or an IP address, without brackets. */
  host: string;
  port: number;
}

/** The members behind client URLs. */
export function membersOf(urls: readonly string[]): EtcdMember[] {
  return urls.map((url, index) => {
    const { hostname, port } = new URL(url);
    return { name: `e${index + 1}`, host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 443) };
  });
}

/** Where members talk to each other: the port after the one for clients, as with etcd's own 2379 and 2380. */
export function peerPortOf({ port }: Pick<EtcdMember, "port">): number {
  return port + 1;
}

/**
 * The arguments with which etcd 3.4 starts as a member. Clients and other members need a certificate.
 *
 * @param files the directory with the member's files
 */
export function argumentsOf(member: EtcdMember, all: readonly EtcdMember[], files: string): string[] {
  const [ca, certificate, key] = Object.values(MEMBER_FILES).map((name) => join(files, name)) as [
    string,
    string,
    string,
  ];
  const { name, host, port } = member;
  // etcd listens at addresses only.
  const listen = isIP(host) === 0 ? "0.0.0.0" : host;
  const peers = all.map((each) => `${each.name}=${urlOf(each.host, peerPortOf(each))}`);
  return [
    ...[`--name=${name}`, `--data-dir=/var/lib/etcd/hibernaut-${name}`],
    `--listen-client-urls=${urlOf(listen, port)}`,
    `--advertise-client-urls=${urlOf(host, port)}`,
    ...[`--cert-file=${certificate}`, `--key-file=${key}`, `--trusted-ca-file=${ca}`, "--client-cert-auth"],
    `--listen-peer-urls=${urlOf(listen, peerPortOf(member))}`,
    `--initial-advertise-peer-urls=${urlOf(host, peerPortOf(member))}`,
    `--initial-cluster=${peers.join(",")}`,
    ...[`--peer-cert-file=${certificate}`, `--peer-key-file=${key}`],
    ...[`--peer-trusted-ca-file=${ca}`, "--peer-client-cert-auth"],
    `--auto-compaction-retention=${COMPACTION}`,
  ];
}

function urlOf(host: string, port: number): string {
  return `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
