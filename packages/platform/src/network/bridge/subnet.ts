/** Where in its subnet a machine is, and the choice of a subnet that is free. Pure. */
import type { KnownMachine } from "../contract.ts";
import { formatAddress, overlap, parseAddress, parseSubnet, type Subnet, size } from "../../lib/ipv4.ts";

/** 1021 machines; a bridge of Linux has room for 1023 taps. */
const PREFIX_LENGTH = 22;
/** Private ranges that few others use, tried in this order: 64, 16 and 8 subnets. */
const RANGES = ["10.213.0.0/16", "172.29.64.0/18", "192.168.224.0/19"].map((text) => {
  const range = parseSubnet(text);
  if (range === undefined) throw new Error(`${text} is no subnet`);
  return range;
});

/** The host's own address in the subnet. */
export const GATEWAY_HOST = 1;
export const FIRST_MACHINE_HOST = 2;

/** The `host`-th address of the subnet. */
export function addressOf(subnet: Subnet, host: number): string {
  return formatAddress(subnet.base + host);
}

/** Which address of the subnet's this is, or undefined when it is not one that a machine can have. */
export function machineHost(subnet: Subnet, address: string): number | undefined {
  const host = (parseAddress(address) ?? -1) - subnet.base;
  return host >= FIRST_MACHINE_HOST && host < size(subnet) - 1 ? host : undefined;
}

/**
 * A subnet that overlaps none in `used`, or undefined when all are taken. The search begins at a place
 * that depends on `seed`, so that platforms which do not run at the same time rarely choose the same.
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
 * The subnets that a data folder knows, first the one in which most would be lost without it: guests that run,
 * then machines that sleep. In a tie they stay in the order in which they came.
 */
export function byLoss(known: readonly Subnet[], machines: readonly KnownMachine[]): Subnet[] {
  const count = (subnet: Subnet, memory: KnownMachine["memory"]) =>
    machines.filter((machine) => machine.memory === memory && machineHost(subnet, machine.address) !== undefined)
      .length;
  return known.toSorted((a, b) => count(b, "awake") - count(a, "awake") || count(b, "asleep") - count(a, "asleep"));
}

/**
 * Whether a subnet chosen earlier must be given up: somebody else has all or a part of it. A wider
 * route (a VPN's 10.0.0.0/8) does no harm, because the kernel takes the narrower one, ours.
 */
export function stolen(subnet: Subnet, used: readonly Subnet[]): boolean {
  return thief(subnet, used) !== undefined;
}

/** Who has all or a part of it, see {@link stolen}. */
export function thief<T extends Subnet>(subnet: Subnet, used: readonly T[]): T | undefined {
  return used.find((other) => other.prefix >= subnet.prefix && overlap(subnet, other));
}
