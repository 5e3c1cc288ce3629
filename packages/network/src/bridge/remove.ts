/** Removes a network: the taps of destroyed machines, or everything. */
import { HibernautError } from "@hibernaut/domain/errors";
import { type Subnet } from "@hibernaut/lib/ipv4";
import { hasLink, ip, listTaps, nft } from "./commands.ts";
import { deleteLink, forgetNeighbour } from "./links.ts";
import { type Names, namesFor, tapHost } from "./names.ts";
import { noRuleset } from "./ruleset.ts";
import { addressOf } from "./subnet.ts";

/** Removes taps and the neighbor entries of their machines. The bridge must exist. */
export async function removeTaps(names: Names, subnet: Subnet, taps: readonly string[]): Promise<void> {
  await ip(taps.flatMap((tap) => [deleteLink(tap), forgetNeighbour(names, addressOf(subnet, tapHost(names, tap)))]));
}

/** Removes taps, bridge and tables, as far as they exist. */
export async function removeNetwork(names: Names): Promise<void> {
  await ip([...(await listTaps(names))].map(deleteLink));
  if (await hasLink(names.bridge)) await ip([deleteLink(names.bridge)]);
  await nft(noRuleset(names));
}

/**
 * Removes the bridge network of a data directory, given its real path, for which no platform or guest may be running.
 * Does nothing without root. Rejects with a HibernautError when something cannot be removed.
 */
export async function uninstallBridge(dataDir: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const names = namesFor(dataDir);
  try {
    await removeNetwork(names);
  } catch (error) {
    const nothingThere = !(await hasLink(names.bridge)) && (await listTaps(names)).size === 0;
    // A host without nft never had our rules, and one without a bridge does not need them.
    if (!(nothingThere && error instanceof HibernautError && error.details.missing === "nft")) throw error;
  }
}
