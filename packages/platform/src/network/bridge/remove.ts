/** Taking a network away again: some taps of machines that are gone, or all there is. */
import { HibernautError } from "../../domain/errors.ts";
import { hasLink, ip, listTaps, nft } from "./commands.ts";
import { deleteLink, forgetNeighbour } from "./links.ts";
import { type Names, namesFor, tapHost } from "./names.ts";
import { noRuleset } from "./ruleset.ts";
import { type Subnet } from "../../lib/ipv4.ts";
import { addressOf } from "./subnet.ts";

/** Removes taps, and what the host remembers of the machines behind them. The bridge must be there. */
export async function removeTaps(names: Names, subnet: Subnet, taps: readonly string[]): Promise<void> {
  await ip(taps.flatMap((tap) => [deleteLink(tap), forgetNeighbour(names, addressOf(subnet, tapHost(names, tap)))]));
}

/** Removes taps, bridge and tables, whatever of them is there. */
export async function removeNetwork(names: Names): Promise<void> {
  await ip([...(await listTaps(names))].map(deleteLink));
  if (await hasLink(names.bridge)) await ip([deleteLink(names.bridge)]);
  await nft(noRuleset(names));
}

/**
 * Removes the bridge network of a data folder (its real path), on which no platform and no guest may run any more.
 * Without root there is none. Rejects with a HibernautError when something stays.
 */
export async function uninstallBridge(dataDir: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const names = namesFor(dataDir);
  try {
    await removeNetwork(names);
  } catch (error) {
    const nothingThere = !(await hasLink(names.bridge)) && (await listTaps(names)).size === 0;
    // A host without nft never had our rules, and one without a bridge has no need of them.
    if (!(nothingThere && error instanceof HibernautError && error.details.missing === "nft")) throw error;
  }
}
