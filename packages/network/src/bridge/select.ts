/** Selects the subnet for the machines of a data directory. */
import { isDeepStrictEqual } from "node:util";
import { HibernautError } from "@hibernaut/domain/errors";
import { parseSubnet, type Subnet } from "@hibernaut/lib/ipv4";
import type { KnownMachine } from "../contract.ts";
import { usedSubnets } from "./commands.ts";
import type { Names } from "./names.ts";
import { ownerOf, removeAbandoned } from "./owner.ts";
import { readSubnets, writeSubnets } from "./state.ts";
import { byLoss, chooseSubnet, machineHost, occupant } from "./subnet.ts";

interface SelectOptions {
  /** Real path of the data directory. */
  dataDir: string;
  names: Names;
  /** `a.b.c.d/n`, or `auto`. */
  setting: string;
  machines: readonly KnownMachine[];
  /** Called with the selection before it takes effect. Throws when it must not. */
  judge?: ((selection: Selection) => void) | undefined;
}

/** A subnet that machines belong to and that something else on the host has. */
export interface Taken {
  subnet: Subnet;
  /** The interface that has the subnet. Empty for a route without one. */
  device: string;
  /** The data directory of the platform that the interface belongs to, if it is a platform's bridge. */
  folder?: string;
}

/** The selected subnet. */
export interface Selection {
  subnet: Subnet;
  /** The subnet that would have been preferred. */
  taken?: Taken;
}

/**
 * Returns the configured subnet, otherwise the known one whose loss would cost most machines their memory, otherwise a
 * free one, and remembers it. Rejects with `failed_precondition` when the host uses the configured subnet, with
 * `resource_exhausted` when no subnet is free, and with what `judge` throws.
 */
export async function selectSubnet(options: SelectOptions): Promise<Selection> {
  const { dataDir, names, setting, machines, judge } = options;
  const set = parseSubnet(setting);
  const state = await readSubnets(dataDir);
  const known = byLoss(
    [state.subnet, state.earlier].filter((one) => one !== undefined),
    machines,
  );
  const [wanted] = known;
  let used = await usedSubnets(names.bridge);
  if (set === undefined && wanted !== undefined && (await removeAbandoned(occupant(wanted, used)?.device)))
    used = await usedSubnets(names.bridge);
  if (set !== undefined && occupant(set, used) !== undefined) {
    throw new HibernautError(
      "failed_precondition",
      `The host already has an address or a route in ${setting}. Set HIBERNAUT_NETWORK_SUBNET to a subnet that the host does not use, or to auto.`,
    );
  }
  const kept = known.find((subnet) => occupant(subnet, used) === undefined);
  const subnet = set ?? kept ?? chooseSubnet(used, Number.parseInt(names.bridge.slice(-6), 16));
  if (subnet === undefined) {
    throw new HibernautError(
      "resource_exhausted",
      "The host uses every subnet that the platform would choose. Set HIBERNAUT_NETWORK_SUBNET to a free one, e.g. 10.99.0.0/22.",
    );
  }
  const holder = set === undefined ? wanted && occupant(wanted, used) : undefined;
  const selection = { subnet, ...(wanted && holder && { taken: await takenBy(wanted, holder.device) }) };
  judge?.(selection);
  const isNeeded = (other: Subnet) => machines.some((machine) => needs(machine, other));
  const earlier = known.find((other) => !isDeepStrictEqual(other, subnet) && isNeeded(other));
  const next = { subnet, ...(earlier && { earlier }) };
  if (!isDeepStrictEqual(state, next)) await writeSubnets(dataDir, next);
  return selection;
}

async function takenBy(subnet: Subnet, device: string): Promise<Taken> {
  const folder = await ownerOf(device);
  return { subnet, device, ...(folder !== undefined && { folder }) };
}

function needs({ memory, address }: KnownMachine, subnet: Subnet): boolean {
  return memory !== undefined && machineHost(subnet, address) !== undefined;
}
