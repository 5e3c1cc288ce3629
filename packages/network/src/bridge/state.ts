/** The subnets that a bridge network remembers in the data directory, so that addresses stay the same. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { replaceFile } from "@hibernaut/lib/durable";
import { formatSubnet, parseSubnet, type Subnet } from "@hibernaut/lib/ipv4";

const FILE = "network.json";

/** The subnets that a data directory has used. */
interface KnownSubnets {
  /** The subnet of the last start. */
  subnet?: Subnet;
  /** An earlier subnet that machines with memory still belong to. */
  earlier?: Subnet;
}

/** Reads the subnets of earlier starts. A damaged file counts as none, and machines get new addresses. */
export async function readSubnets(dataDir: string): Promise<KnownSubnets> {
  const text = await readFile(join(dataDir, FILE), "utf8").catch(ifAbsent("{}"));
  try {
    const state = JSON.parse(text) as { subnet?: unknown; earlier?: unknown };
    const subnet = parseSubnet(String(state.subnet));
    const earlier = parseSubnet(String(state.earlier));
    return { ...(subnet && { subnet }), ...(earlier && { earlier }) };
  } catch {
    return {};
  }
}

/** Remembers the subnets, durably. */
export async function writeSubnets(dataDir: string, { subnet, earlier }: KnownSubnets): Promise<void> {
  const file = join(dataDir, FILE);
  const state = { ...(subnet && { subnet: formatSubnet(subnet) }), ...(earlier && { earlier: formatSubnet(earlier) }) };
  await replaceFile(file, `${JSON.stringify(state)}\n`, { mode: 0o600 });
}
