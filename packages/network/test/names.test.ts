import { expect, test } from "vitest";
import { namesFor } from "../src/bridge/names.ts";

/** nft refuses longer comments, and with them all rules. */
const NFT_COMMENT_BYTES = 128;

test("tables name their data directory, as far as nft allows", () => {
  expect(namesFor("/var/lib/hibernaut").owner).toBe("/var/lib/hibernaut");
  for (const folder of [`/srv/${"long/".repeat(60)}`, `/srv/${"ü".repeat(200)}`, `/s/${"🌙".repeat(100)}`]) {
    const { owner } = namesFor(folder);
    expect(Buffer.byteLength(owner)).toBeLessThanOrEqual(NFT_COMMENT_BYTES);
    expect(owner.startsWith(folder.slice(0, 20))).toBe(true);
  }
  expect(namesFor('/srv/"a\\b\n').owner).toBe("/srv/?a?b?");
});
