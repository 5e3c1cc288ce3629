/**
 * Power cuts as they are: the platform runs in an emulated machine whose process is killed while machines in it start,
 * sleep, write and are updated, so that nothing survives that was not flushed. After each cut the same disk boots again,
 * and everything that the API had called durable has to be there.
 *
 * HIBERNAUT_POWER_CUTS is the number of cuts, and HIBERNAUT_POWER_SEED repeats the choices of an earlier run. With
 * HIBERNAUT_POWER_FLUSH=off no program in the machine really flushes, and the test has to fail.
 */
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packSmallApp } from "../helpers/small-app/image.ts";
import { openTempFolder } from "../helpers/temp.ts";
import { buildOuterFiles } from "../outer/outer-disk.ts";
import { Random } from "./random.ts";
import { Rig } from "./rig.ts";

const CUTS = Number(process.env["HIBERNAUT_POWER_CUTS"] ?? 50);
const SEED = Number(process.env["HIBERNAUT_POWER_SEED"] ?? randomInt(2 ** 31));
/** After this number of cuts, an empty disk takes the place of the old one, so that first starts are cut, too. */
const CUTS_PER_DISK = 10;
/** Two machines that start cold inside an emulated one take minutes on a busy host. */
const LIMIT_PER_CUT_MS = 15 * 60_000;

test(`after each of ${CUTS} power cuts (seed ${SEED}), everything that was called durable is there`, {
  timeout: (CUTS + 1) * LIMIT_PER_CUT_MS,
}, async () => {
  await packSmallApp();
  await using folder = await openTempFolder("power");
  const files = await buildOuterFiles(folder.path, {
    flush: process.env["HIBERNAUT_POWER_FLUSH"] !== "off",
    proved: true, // again after every cut, it would take longer than the cut
  });
  const random = new Random(SEED);
  let cut = 0;
  for (let disk = 1; cut < CUTS; disk += 1) {
    const rig = await Rig.make(files, join(folder.path, `disk-${disk}`), random);
    try {
      const last = Math.min(cut + CUTS_PER_DISK, CUTS);
      while (cut < last) {
        cut += 1;
        process.stderr.write(`power cut: ${JSON.stringify(await rig.round(cut))}\n`);
      }
      process.stderr.write(`after the last cut of disk ${disk}: ${JSON.stringify(await rig.finish())}\n`);
    } finally {
      await rig.close();
    }
  }
  expect(cut).toBe(CUTS);
});
