/** One changed bit anywhere in a snapshot is noticed: by the first wake after a restart of the host, and by the scrubber. */
import { readFileSync, statSync } from "node:fs";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { parseManifest } from "../src/manifest.ts";
import { GENERATION, MACHINE, Sealed, SLOWLY } from "./sealed.ts";

const FLIPS = longOr(1000, 300);
/** Each starts a program. */
const SCRUBBED = longOr(FLIPS, 60);
const FOUND = /^snapshot_corrupt: the (memory|devices|manifest)/;

let sealed: Sealed;
beforeAll(async () => {
  sealed = await Sealed.make();
});
afterAll(() => sealed.dispose());

test(`each of ${FLIPS} changed bits is found, and nothing once it is changed back`, { timeout: 120_000 }, async () => {
  const bits = fc
    .constantFrom("memory", "devices", "manifest.json")
    .chain((file) => fc.record({ file: fc.constant(file), bit: fc.nat(statSync(sealed.path(file)).size * 8 - 1) }));
  let flips = 0;
  const flip = fc.asyncProperty(bits, async ({ file, bit }) => {
    flips += 1;
    await sealed.flip(file, bit);
    const { reason } = await sealed.refusal("boot-2");
    const scrubbed = flips <= SCRUBBED ? await sealed.store("boot-1").scrub(MACHINE, GENERATION, SLOWLY) : reason;
    await sealed.flip(file, bit);
    expect(reason).toMatch(FOUND);
    expect(scrubbed).toMatch(FOUND);
  });
  await fc.assert(flip, { numRuns: FLIPS });
  expect((await sealed.refusal("boot-2")).reason).toBeUndefined();
  expect(await sealed.store("boot-1").scrub(MACHINE, GENERATION, SLOWLY)).toBeUndefined();
});

test("each bit of a manifest is found", () => {
  const manifest = readFileSync(sealed.path("manifest.json"));
  for (let bit = 0; bit < manifest.length * 8; bit += 1) {
    const changed = Buffer.from(manifest);
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
    expect(parseManifest(changed.toString("utf8")), `bit ${bit}`).toMatch(/^snapshot_corrupt: the manifest/);
  }
});
