/** Removes a network: the taps of destroyed machines, or everything. */
import { HibernautError } from "@hibernaut/domain/errors";
import { type Subnet } from "@hibernaut/lib/ipv4";
import { hasLink, ip, listTables, listTaps, nft } from "./commands.ts";
import { deleteLink, forgetNeighbour } from "./links.ts";
import { bridgeOfTable, type Names, namesFor, tapHost } from "./names.ts";
import { noRuleset } from "./ruleset.ts";
import { addressOf } from "./subnet.ts";

/** Removes taps and the neighbor entries of their machines. The bridge must exist. */
export async function removeTaps(names: Names, subnet: Subnet, taps: readonly string[]): Promise<void> {
  await ip(taps.flatMap((tap) => [deleteLink(tap), forgetNeighbour(names, addressOf(subnet, tapHost(names, tap)))]));
}

/** Removes tables, taps and bridge, as far as they exist. */
export async function removeNetwork(names: Names): Promise<void> {
  // The tables first: once the bridge is gone, another platform may have its subnet.
  const rules = nft(noRuleset(names));
  await rules.catch(() => {}); // its links go in any case
  await ip([...(await listTaps(names))].map(deleteLink));
  if (await hasLink(names.bridge)) await ip([deleteLink(names.bridge)]);
  await rules;
}

/**
 * Removes the tables of platforms that have no bridge: one that was killed while it set up or removed its network leaves
 * them. They keep the platform that has their subnet next from its host. A platform that is still there makes its own again.
 */
export async function removeOrphans(except: Names): Promise<void> {
  const orphans: string[] = [];
  for (const table of await listTables()) {
    const bridge = bridgeOfTable(table);
    if (bridge !== undefined && bridge !== except.bridge && !(await hasLink(bridge))) orphans.push(table);
  }
  if (orphans.length > 0) await nft(orphans.map((table) => `table ${table}\ndelete table ${table}\n`).join(""));
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
