/** The names of a platform's objects in the kernel. They depend on the data directory, so platforms never collide. */
import { createHash } from "node:crypto";
import { PREFIX } from "../contract.ts";

/** nft accepts comments of up to 128 bytes. A character that is cut in half becomes one of three bytes. */
const COMMENT_BYTES = 120;

export interface Names {
  /** Name of the bridge, e.g. `hib3fa29c`. */
  bridge: string;
  /** What the names of all taps begin with, e.g. `hib3fa29ct`. */
  tapPrefix: string;
  /** Name of the nftables tables, e.g. `hibernaut_3fa29c`. */
  table: string;
  /** Name of the nftables table that counts what machines open, e.g. `hibernaut_3fa29c_flows`. */
  flowTable: string;
  /** Name of the nftables table that counts what clients open, e.g. `hibernaut_3fa29c_clients`. */
  clientTable: string;
  /** Name of the nftables tables for what machines connect to, e.g. `hibernaut_3fa29c_egress`. */
  egressTable: string;
  /** The tables' comment: the beginning of the data directory's path, without characters that would end the comment. */
  owner: string;
}

/** Returns the names for a data directory, given its real path. Interfaces may have 15 bytes: 3 + 6 + 1 + up to 5. */
export function namesFor(dataDir: string): Names {
  const hash = createHash("sha256").update(dataDir).digest("hex").slice(0, 6);
  return {
    bridge: PREFIX + hash,
    tapPrefix: `${PREFIX}${hash}t`,
    table: `hibernaut_${hash}`,
    flowTable: `hibernaut_${hash}_flows`,
    clientTable: `hibernaut_${hash}_clients`,
    egressTable: `hibernaut_${hash}_egress`,
    owner: Buffer.from(dataDir.replace(/["\\\p{Cc}]/gu, "?"))
      .subarray(0, COMMENT_BYTES)
      .toString(),
  };
}

/** Returns the bridge to which a table belongs, named as `inet name`. Undefined for a table of another program. */
export function bridgeOfTable(table: string): string | undefined {
  const hash = /^(?:inet|bridge) hibernaut_([0-9a-f]{6})(?:_flows|_clients|_egress)?$/.exec(table)?.[1];
  return hash === undefined ? undefined : PREFIX + hash;
}

/** Returns the tap of the machine with the `host`-th address of the subnet. Machines share neither addresses nor taps. */
export function tapName({ tapPrefix }: Names, host: number): string {
  return tapPrefix + host;
}

/** Does the reverse of {@link tapName}: returns which address of the subnet a tap is for. */
export function tapHost({ tapPrefix }: Names, tap: string): number {
  return Number(tap.slice(tapPrefix.length));
}
