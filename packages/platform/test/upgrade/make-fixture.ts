/**
 * Makes `first-release.tar.gz`, the data directory that version 0.1 leaves behind, with the code of version 0.1 and its
 * fake hypervisor. It was run once and is kept to show where the file comes from:
 *
 *   node packages/platform/test/upgrade/make-fixture.ts
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FirstRelease } from "../helpers/first-release.ts";
import { openTempFolder } from "../helpers/temp.ts";

/** Runs inside of version 0.1, whose words and files it uses: no module of the present version. */
const MAKE = readFileSync(join(import.meta.dirname, "inside-first-release.txt"), "utf8");

const release = await FirstRelease.open();
const work = await openTempFolder("fixture");
try {
  const data = join(work.path, "data");
  console.log(await release.run(MAKE, [data]));
  const file = join(import.meta.dirname, "first-release.tar.gz");
  // S: the memory and the volume are files of their full size with next to nothing in them.
  execFileSync("tar", ["-C", data, "--owner=0", "--group=0", "-czSf", file, "."]);
  console.log(execFileSync("tar", ["-tvzf", file], { encoding: "utf8" }));
} finally {
  await work.dispose();
  await release.dispose();
}
