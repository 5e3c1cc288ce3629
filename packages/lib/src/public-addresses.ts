/** Which IP addresses can be reached from everywhere. */
import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";

/**
 * Where clouds offer their machines' credentials and settings. Most do so at an address of the link (169.254.0.0/16), two at
 * addresses that look like any other: Azure at one of its own public addresses, and Alibaba at one that carriers share.
 */
export const METADATA_NETWORKS = ["169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32"] as const;

/** Addresses that nobody outside can reach: this host, its networks, a cloud's metadata, groups, and what is reserved. */
const INTERNAL = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const)
  INTERNAL.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of [
  // These carry IPv4 addresses, of any kind. Mapped ones (::ffff:0:0/96) are checked as what they carry.
  ["::", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2001::", 32],
  ["2002::", 16],
  ["100::", 64],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
] as const)
  INTERNAL.addSubnet(network, prefix, "ipv6");

for (const network of METADATA_NETWORKS) addTo(INTERNAL, network);

/** Makes a list of addresses and networks, such as `192.0.2.7` and `fd00::/8`. */
export function networkList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) addTo(list, network);
  return list;
}

function addTo(list: BlockList, network: string): void {
  const [address = "", bits] = network.split("/");
  const v6 = isIP(address) === 6;
  list.addSubnet(address, bits === undefined ? (v6 ? 128 : 32) : Number(bits), v6 ? "ipv6" : "ipv4");
}

/** Whether an address is in one of the networks. */
export function isIn(networks: BlockList, address: string): boolean {
  // A scope (fe80::1%eth0) says which interface is meant.
  const [bare = ""] = address.split("%", 1);
  const version = isIP(bare);
  return version !== 0 && networks.check(bare, version === 6 ? "ipv6" : "ipv4");
}

/** Whether an address can be reached from everywhere. False for anything that is not an address. */
export function isPublicAddress(address: string): boolean {
  return isIP(address.split("%", 1)[0] ?? "") !== 0 && !isIn(INTERNAL, address);
}

/**
 * Returns which addresses are outside for machines of this host: public, in none of these networks, and not this host's own,
 * which change while it runs.
 */
export function outsideOf(blocked: readonly string[]): (address: string) => boolean {
  const closed = networkList(blocked);
  return (address) => {
    if (!isPublicAddress(address) || isIn(closed, address)) return false;
    return !Object.values(networkInterfaces()).some((list) => list?.some((own) => own.address === address));
  };
}

/** Returns those addresses that can be reached from everywhere. */
export function publicAddresses(addresses: readonly string[]): string[] {
  return addresses.filter(isPublicAddress);
}
