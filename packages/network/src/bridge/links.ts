/** Bridge and taps as lines for `ip -batch` and `bridge -batch`. Pure. */
import { type Subnet } from "@hibernaut/lib/ipv4";
import { local } from "../mac.ts";
import type { Names } from "./names.ts";
import type { Port } from "./ruleset.ts";
import { addressOf, GATEWAY_HOST } from "./subnet.ts";

/**
 * Returns the MAC address of the bridge. Without a fixed one, a bridge takes the lowest address of its ports, which
 * changes. Sleeping guests remember the address, so it must also be the same after a reboot of the host.
 */
export function gatewayMac({ base }: Subnet): string {
  return local(new Uint8Array([0x68, base >>> 24, (base >>> 16) & 255, (base >>> 8) & 255, base & 255]));
}

/** Adds the bridge, without a spanning tree, so that a new tap works at once, and without snooping for multicast. */
export function newBridge({ bridge }: Names): string[] {
  return [`link add name ${bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0`];
}

/** Configures a bridge that exists. */
export function bridgeSettings({ bridge }: Names, subnet: Subnet): string[] {
  return [
    `link set dev ${bridge} address ${gatewayMac(subnet)} addrgenmode none up`,
    `address replace ${addressOf(subnet, GATEWAY_HOST)}/${subnet.prefix} dev ${bridge}`,
  ];
}

/** Removes the bridge's addresses in other subnets than the current one, so that those subnets are free for others. */
export function staleAddresses({ bridge }: Names, subnet: Subnet, found: readonly string[]): string[] {
  const current = `${addressOf(subnet, GATEWAY_HOST)}/${subnet.prefix}`;
  return found.filter((address) => address !== current).map((address) => `address delete ${address} dev ${bridge}`);
}

/** Adds a tap. It outlives the QEMU process that uses it. */
export function newTap(tap: string): string[] {
  return [`tuntap add dev ${tap} mode tap`];
}

/**
 * Configures a tap that exists. The bridge learns nothing from machines and sends a machine only what is addressed to
 * it. The host keeps a permanent neighbor entry for a sleeping machine: packets to the machine are lost, which a TCP
 * connection survives, whereas a neighbor that does not answer would end it with EHOSTUNREACH.
 */
export function tapSettings({ bridge }: Names, { tap, mac, address }: Port): string[] {
  return [
    `link set dev ${tap} addrgenmode none master ${bridge} up`,
    `link set dev ${tap} type bridge_slave learning off flood off mcast_flood off`,
    `neighbour replace ${address} lladdr ${mac} dev ${bridge} nud permanent`,
  ];
}

/** For `bridge -batch`: tells the bridge which tap has the machine's MAC, because the bridge does not learn. */
export function forwardingEntry({ tap, mac }: Port): string {
  return `fdb replace ${mac} dev ${tap} master static`;
}

/** Removes an interface. */
export function deleteLink(name: string): string {
  return `link delete dev ${name}`;
}

/** Removes the neighbor entry of an address. Succeeds when there is none. */
export function forgetNeighbour({ bridge }: Names, address: string): string {
  return `neighbour flush to ${address} dev ${bridge} nud permanent`;
}
