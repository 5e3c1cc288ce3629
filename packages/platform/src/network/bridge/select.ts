/** Which subnet the machines of a data folder live in. */
import { HibernautError } from "../../errors.ts";
import { usedSubnets } from "./commands.ts";
import type { Names } from "./names.ts";
import { readSubnet, writeSubnet } from "./state.ts";
import { formatSubnet, parseSubnet, type Subnet } from "../../ipv4.ts";
import { chooseSubnet, stolen } from "./subnet.ts";

/**
 * The subnet that is set, else the one of the last start, else a free one, which is remembered. Rejects with
 * `failed_precondition` when the host uses the one that is set, `resource_exhausted` when none is free.
 */
export async function selectSubnet(dataDir: string, names: Names, setting: string): Promise<Subnet> {
  const used = await usedSubnets(names.bridge);
  const set = parseSubnet(setting);
  if (set !== undefined && stolen(set, used)) {
    throw new HibernautError(
      "failed_precondition",
      `The host has an address or a route in ${setting} already. Set HIBERNAUT_NETWORK_SUBNET to a subnet that it does not use, or to auto.`,
    );
  }
  const remembered = await readSubnet(dataDir);
  const kept = remembered !== undefined && !stolen(remembered, used) ? remembered : undefined;
  const subnet = set ?? kept ?? chooseSubnet(used, Number.parseInt(names.bridge.slice(-6), 16));
  if (subnet === undefined) {
    throw new HibernautError(
      "resource_exhausted",
      "Every subnet that the platform would take is used by the host. Set HIBERNAUT_NETWORK_SUBNET to a free one, e.g. 10.99.0.0/22.",
    );
  }
  if (remembered === undefined || formatSubnet(remembered) !== formatSubnet(subnet)) await writeSubnet(dataDir, subnet);
  return subnet;
}
