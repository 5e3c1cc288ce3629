/** What a bridge network keeps in the data folder: its subnet, so that addresses stay the same for good. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../../lib/durable.ts";
import { formatSubnet, parseSubnet, type Subnet } from "../../lib/ipv4.ts";

const FILE = "network.json";

/** The subnets that a data folder knows. */
export interface KnownSubnets {
  /** That of the last start. */
  subnet?: Subnet;
  /** An earlier one, to which machines with something to lose still belong. */
  earlier?: Subnet;
}

/** The subnets of earlier starts. A file that cannot be read counts as none: machines then get new addresses. */
export async function readSubnets(dataDir: string): Promise<KnownSubnets> {
  try {
    const state = JSON.parse(await readFile(join(dataDir, FILE), "utf8")) as { subnet?: unknown; earlier?: unknown };
    const subnet = parseSubnet(String(state.subnet));
    const earlier = parseSubnet(String(state.earlier));
    return { ...(subnet && { subnet }), ...(earlier && { earlier }) };
  } catch {
    return {};
  }
}

export async function writeSubnets(dataDir: string, { subnet, earlier }: KnownSubnets): Promise<void> {
  const file = join(dataDir, FILE);
  const state = { ...(subnet && { subnet: formatSubnet(subnet) }), ...(earlier && { earlier: formatSubnet(earlier) }) };
  await replaceFile(file, `${JSON.stringify(state)}\n`, { mode: 0o600 });
}
