/** Bridge and taps as lines for `ip -batch` and `bridge -batch`. Pure. */
import { local } from "../mac.ts";
import type { Names } from "./names.ts";
import type { Port } from "./ruleset.ts";
import { type Subnet } from "../../lib/ipv4.ts";
import { addressOf, GATEWAY_HOST } from "./subnet.ts";

/**
 * The MAC address of the bridge. Without one of its own a bridge takes the lowest of its ports', which
 * changes; sleeping guests remember it, so it must be the same after a reboot of the host, too.
 */
export function gatewayMac({ base }: Subnet): string {
  return local(new Uint8Array([0x68, base >>> 24, (base >>> 16) & 255, (base >>> 8) & 255, base & 255]));
}

/** No spanning tree, so a tap that comes up is used at once; no snooping, because machines send no multicast. */
export function newBridge({ bridge }: Names): string[] {
  return [`link add name ${bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0`];
}

/** What a bridge that is there must be like. */
export function bridgeSettings({ bridge }: Names, subnet: Subnet): string[] {
  return [
    `link set dev ${bridge} address ${gatewayMac(subnet)} addrgenmode none up`,
    `address replace ${addressOf(subnet, GATEWAY_HOST)}/${subnet.prefix} dev ${bridge}`,
  ];
}

/** Addresses that the bridge has from another subnet than the present one: others may want it back. */
export function staleAddresses({ bridge }: Names, subnet: Subnet, found: readonly string[]): string[] {
  const own = `${addressOf(subnet, GATEWAY_HOST)}/${subnet.prefix}`;
  return found.filter((address) => address !== own).map((address) => `address delete ${address} dev ${bridge}`);
}

/** The tap outlives the QEMU process that uses it. */
export function newTap(tap: string): string[] {
  return [`tuntap add dev ${tap} mode tap`];
}

/**
 * What a tap that is there must be like. The bridge learns nothing from machines and sends them nothing that is not
 * for them. The host knows a sleeping machine's MAC for good: packets to it vanish, which a TCP connection
 * survives, where a neighbour that does not answer would end it with EHOSTUNREACH.
 */
export function tapSettings({ bridge }: Names, { tap, mac, address }: Port): string[] {
  return [
    `link set dev ${tap} addrgenmode none master ${bridge} up`,
    `link set dev ${tap} type bridge_slave learning off flood off mcast_flood off`,
    `neighbour replace ${address} lladdr ${mac} dev ${bridge} nud permanent`,
  ];
}

/** For `bridge -batch`: where the machine's MAC is, since nothing is learned. */
export function forwardingEntry({ tap, mac }: Port): string {
  return `fdb replace ${mac} dev ${tap} master static`;
}

export function deleteLink(name: string): string {
  return `link delete dev ${name}`;
}

/** Fine when there is none. */
export function forgetNeighbour({ bridge }: Names, address: string): string {
  return `neighbour flush to ${address} dev ${bridge} nud permanent`;
}
