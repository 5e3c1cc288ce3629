/** What a platform calls its things in the kernel. Another data folder has other names: platforms never meet. */
import { createHash } from "node:crypto";

/** Every bridge and tap of every platform begins with it, and nothing else should. */
const PREFIX = "hib";

/** nft takes comments of up to 128 bytes; a character that is cut through becomes one of three bytes. */
const COMMENT_BYTES = 120;

export interface Names {
  /** Name of the bridge, e.g. `hib3fa29c`. */
  bridge: string;
  /** What the names of all taps begin with, e.g. `hib3fa29ct`. */
  tapPrefix: string;
  /** Name of the nftables tables, e.g. `hibernaut_3fa29c`. */
  table: string;
  /** What the tables say about themselves: the beginning of the data folder's path, without what would end the text. */
  owner: string;
}

/** Names for a data folder, given by its real path. The kernel allows interfaces 15 bytes: 3 + 6 + 1 + up to 5. */
export function namesFor(dataDir: string): Names {
  const hash = createHash("sha256").update(dataDir).digest("hex").slice(0, 6);
  return {
    bridge: PREFIX + hash,
    tapPrefix: `${PREFIX}${hash}t`,
    table: `hibernaut_${hash}`,
    owner: Buffer.from(dataDir.replace(/["\\\p{Cc}]/gu, "?"))
      .subarray(0, COMMENT_BYTES)
      .toString(),
  };
}

/** Whether an interface is called as the bridges of platforms are. */
export function isBridgeName(device: string): boolean {
  return new RegExp(`^${PREFIX}[0-9a-f]{6}$`).test(device);
}

/** The tap of the machine with the `host`-th address of the subnet: no two machines share an address, so none a tap. */
export function tapName({ tapPrefix }: Names, host: number): string {
  return tapPrefix + host;
}

/** The other way round: which address of the subnet a tap is for. */
export function tapHost({ tapPrefix }: Names, tap: string): number {
  return Number(tap.slice(tapPrefix.length));
}
