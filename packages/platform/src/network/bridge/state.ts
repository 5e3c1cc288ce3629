/** What a bridge network keeps in the data folder: its subnet, so that addresses stay the same for good. */
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatSubnet, parseSubnet, type Subnet } from "../../ipv4.ts";

const FILE = "network.json";

/** The subnet of an earlier start. A file that cannot be read counts as none: machines then get new addresses. */
export async function readSubnet(dataDir: string): Promise<Subnet | undefined> {
  try {
    const { subnet } = JSON.parse(await readFile(join(dataDir, FILE), "utf8")) as { subnet?: unknown };
    return parseSubnet(String(subnet));
  } catch {
    return undefined;
  }
}

export async function writeSubnet(dataDir: string, subnet: Subnet): Promise<void> {
  const file = join(dataDir, FILE);
  await writeFile(`${file}.new`, `${JSON.stringify({ subnet: formatSubnet(subnet) })}\n`);
  await rename(`${file}.new`, file);
}
