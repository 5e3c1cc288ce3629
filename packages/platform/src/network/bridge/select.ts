/** Which subnet the machines of a data folder live in. */
import { HibernautError } from "../../domain/errors.ts";
import { parseSubnet, type Subnet } from "../../lib/ipv4.ts";
import type { KnownMachine } from "../contract.ts";
import { usedSubnets } from "./commands.ts";
import type { Names } from "./names.ts";
import { ownerOf, removeAbandoned } from "./owner.ts";
import { type KnownSubnets, readSubnets, writeSubnets } from "./state.ts";
import { byLoss, chooseSubnet, machineHost, stolen, thief } from "./subnet.ts";

/** Who is asking, and for whom. */
interface SelectOptions {
  /** Real path of the data folder. */
  dataDir: string;
  names: Names;
  /** `a.b.c.d/n`, or `auto`. */
  setting: string;
  machines: readonly KnownMachine[];
}

/** A subnet that machines belong to and that the platform cannot have. */
export interface Taken {
  subnet: Subnet;
  /** The interface that has it; empty for a route without one. */
  device: string;
  /** The data folder of the platform whose bridge that is, where the bridge says so. */
  folder?: string;
}

export interface Selection {
  subnet: Subnet;
  /** The one that would have been preferred. */
  taken?: Taken;
}

/**
 * The subnet that is set, else the known one in which most would be lost without it, else a free one; it is
 * remembered. Rejects with `failed_precondition` when the host uses the one that is set, `resource_exhausted` when
 * none is free.
 */
export async function selectSubnet({ dataDir, names, setting, machines }: SelectOptions): Promise<Selection> {
  const set = parseSubnet(setting);
  const state = await readSubnets(dataDir);
  const known = byLoss(
    [state.subnet, state.earlier].filter((one) => one !== undefined),
    machines,
  );
  const [wanted] = known;
  let used = await usedSubnets(names.bridge);
  if (set === undefined && wanted !== undefined && (await removeAbandoned(thief(wanted, used)?.device)))
    used = await usedSubnets(names.bridge);
  if (set !== undefined && stolen(set, used)) {
    throw new HibernautError(
      "failed_precondition",
      `The host has an address or a route in ${setting} already. Set HIBERNAUT_NETWORK_SUBNET to a subnet that it does not use, or to auto.`,
    );
  }
  const kept = known.find((subnet) => !stolen(subnet, used));
  const subnet = set ?? kept ?? chooseSubnet(used, Number.parseInt(names.bridge.slice(-6), 16));
  if (subnet === undefined) {
    throw new HibernautError(
      "resource_exhausted",
      "Every subnet that the platform would take is used by the host. Set HIBERNAUT_NETWORK_SUBNET to a free one, e.g. 10.99.0.0/22.",
    );
  }
  const earlier = known.find((other) => !same(other, subnet) && machines.some((machine) => needs(machine, other)));
  const next = { subnet, ...(earlier && { earlier }) };
  if (!sameState(state, next)) await writeSubnets(dataDir, next);
  const holder = wanted && thief(wanted, used);
  if (set !== undefined || wanted === undefined || holder === undefined) return { subnet };
  const folder = await ownerOf(holder.device);
  return { subnet, taken: { subnet: wanted, device: holder.device, ...(folder !== undefined && { folder }) } };
}

function same(one: Subnet | undefined, other: Subnet | undefined): boolean {
  return one?.base === other?.base && one?.prefix === other?.prefix;
}

function sameState(one: KnownSubnets, other: KnownSubnets): boolean {
  return same(one.subnet, other.subnet) && same(one.earlier, other.earlier);
}

function needs({ memory, address }: KnownMachine, subnet: Subnet): boolean {
  return memory !== undefined && machineHost(subnet, address) !== undefined;
}
