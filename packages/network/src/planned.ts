/** The network that the next start would open, as far as the machines and the settings decide it. Changes nothing. */
import { parseSubnet } from "@hibernaut/lib/ipv4";
import type { Settings } from "@hibernaut/settings";
import { boundMode } from "./bound.ts";
import { readSubnets } from "./bridge/state.ts";
import { byLoss, machineHost } from "./bridge/subnet.ts";
import type { KnownMachine } from "./contract.ts";

/** Returns which addresses the next start's network would have. Without a known subnet, every one may be. */
export async function plannedNetwork(
  { dataDir, network, networkSubnet }: Pick<Settings, "dataDir" | "network" | "networkSubnet">,
  machines: readonly KnownMachine[],
): Promise<{ owns(address: string): boolean }> {
  const mode = network === "auto" ? boundMode(machines) : network;
  if (mode === "user") return { owns: (address) => address.startsWith("127.") };
  const { subnet, earlier } = await readSubnets(dataDir);
  const known = [subnet, earlier].filter((one) => one !== undefined);
  const wanted = parseSubnet(networkSubnet) ?? byLoss(known, machines)[0];
  return { owns: (address) => wanted === undefined || machineHost(wanted, address) !== undefined };
}
