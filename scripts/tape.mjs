#!/usr/bin/env node
/**
 * `npm run tape`: runs the README's tour by hand on a platform of its own, with real machines, and writes what the
 * terminal showed into docs/tour.txt, and the excerpt into the README.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "./lib/node.mjs";
import { startOwnPlatform } from "./lib/own-platform.mjs";
import { record, TAPE, tapeText, tourOf, withExcerpt } from "./lib/tape.mjs";
import { setup } from "./setup.mjs";

await setup({ quiet: true });
// The user network needs no root.
const platform = await startOwnPlatform({ HIBERNAUT_NETWORK: "user" });
try {
  const file = join(ROOT, "README.md");
  const readme = await readFile(file, "utf8");
  const entries = await record(tourOf(readme), { proxyUrl: platform.proxyUrl ?? "", env: platform.env });
  await writeFile(join(ROOT, TAPE), tapeText(entries));
  await writeFile(file, withExcerpt(readme, entries));
  process.stdout.write(`Recorded ${entries.length} commands in ${TAPE}, and README.md shows some of them.\n`);
} finally {
  // The tour ends with its app destroyed; after a failure, this ends what is left.
  await platform.call("DELETE", "/apps/demo?force=true").catch(() => {});
  await platform.close();
}
