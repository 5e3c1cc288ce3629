/**
 * The machines' subnet as the hosts of a cluster agree on it: a machine that moves keeps its address, so all bridges have
 * the same one. A host on which something else has it uses another one, and such machines cannot move there as they are.
 */
import { formatSubnet, parseSubnet } from "@hibernaut/lib/ipv4";
import { usedSubnets } from "./bridge/commands.ts";
import { readSubnets, writeSubnets } from "./bridge/state.ts";
import { chooseSubnet } from "./bridge/subnet.ts";

/**
 * Returns the subnet of a cluster's first host, as `a.b.c.d/n`: the configured one, the one that its machines have, or else
 * a free one that depends on `seed`, which the host then uses from its next start on. Undefined when there is none.
 */
export async function chooseForAll(dataDir: string, setting: string, seed: number): Promise<string | undefined> {
  if (parseSubnet(setting) !== undefined) return setting;
  const { subnet: known } = await readSubnets(dataDir);
  if (known !== undefined) return formatSubnet(known);
  // Without the program that lists them, there will be no bridge either.
  const subnet = chooseSubnet(await usedSubnets("").catch(() => []), seed);
  if (subnet === undefined) return undefined;
  await writeSubnets(dataDir, { subnet });
  return formatSubnet(subnet);
}

/** Lets a host without machines use the cluster's subnet from its next start on, unless something else on it has that. */
export async function useSubnet(dataDir: string, text: string | undefined): Promise<void> {
  const subnet = parseSubnet(text ?? "");
  if (subnet !== undefined) await writeSubnets(dataDir, { subnet });
}
