/** Addresses within a subnet, and the choice of a free subnet. Pure. */
import { formatAddress, overlap, parseAddress, parseSubnet, type Subnet, size } from "@hibernaut/lib/ipv4";
import type { KnownMachine } from "../contract.ts";

/** Room for 1,021 machines. A Linux bridge can have 1,023 taps. */
const PREFIX_LENGTH = 22;
/** Private ranges that few others use, in the order in which they are tried: 64, 16 and 8 subnets. */
const RANGES = ["10.213.0.0/16", "172.29.64.0/18", "192.168.224.0/19"].map((text) => {
  const range = parseSubnet(text);
  if (range === undefined) throw new Error(`${text} is not a subnet`);
  return range;
});

/** Which address of the subnet is the host's. */
export const GATEWAY_HOST = 1;
/** Which address of the subnet is the first that a machine can have. */
export const FIRST_MACHINE_HOST = 2;

/** Returns the `host`-th address of the subnet. */
export function addressOf(subnet: Subnet, host: number): string {
  return formatAddress(subnet.base + host);
}

/** Returns which address of the subnet this is. Undefined when it is not one that a machine can have. */
export function machineHost(subnet: Subnet, address: string): number | undefined {
  const host = (parseAddress(address) ?? -1) - subnet.base;
  return host >= FIRST_MACHINE_HOST && host < size(subnet) - 1 ? host : undefined;
}

/**
 * Returns a subnet that overlaps none in `used`. Undefined when all are taken. The search starts at a place that depends
 * on `seed`, so that platforms that never run at the same time rarely choose the same subnet.
 */
export function chooseSubnet(used: readonly Subnet[], seed: number): Subnet | undefined {
  for (const range of RANGES) {
    const count = size(range) / size({ prefix: PREFIX_LENGTH });
    for (let step = 0; step < count; step += 1) {
      const base = range.base + ((seed + step) % count) * size({ prefix: PREFIX_LENGTH });
      const candidate = { base, prefix: PREFIX_LENGTH };
      if (!used.some((other) => overlap(candidate, other))) return candidate;
    }
  }
  return undefined;
}

/**
 * Sorts subnets by what would be lost without them: first the one with most running guests, then with most sleeping
 * machines. Subnets that tie keep their order.
 */
export function byLoss(known: readonly Subnet[], machines: readonly KnownMachine[]): Subnet[] {
  const count = (subnet: Subnet, memory: KnownMachine["memory"]) =>
    machines.filter((machine) => machine.memory === memory && machineHost(subnet, machine.address) !== undefined)
      .length;
  return known.toSorted((a, b) => count(b, "awake") - count(a, "awake") || count(b, "asleep") - count(a, "asleep"));
}

/**
 * Returns what occupies all or part of a subnet, so that the platform cannot have it. Undefined when nothing does. A
 * wider route (a VPN's 10.0.0.0/8) does no harm, because the kernel prefers our narrower one.
 */
export function occupant<T extends Subnet>(subnet: Subnet, used: readonly T[]): T | undefined {
  return used.find((other) => other.prefix >= subnet.prefix && overlap(subnet, other));
}
