#!/usr/bin/env node
/**
 * `npm run tape`: runs the README's tour by hand on a platform of its own, with real machines, and writes what the
 * terminal showed into docs/tour.txt, and the excerpt into the README.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./lib/node.mjs";
import { startPlatform } from "./lib/platform.mjs";
import { record, TAPE, tapeText, tourOf, withExcerpt } from "./lib/tape.mjs";
import { setup } from "./setup.mjs";

await setup({ quiet: true });
const dataDir = await mkdtemp(join(tmpdir(), "hibernaut-tape-"));
Object.assign(process.env, {
  HIBERNAUT_DATA_DIR: dataDir,
  XDG_CONFIG_HOME: join(dataDir, "cfg"),
  HIBERNAUT_API_LISTEN: "127.0.0.1:0",
  HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
  // Needs no root and leaves no bridge behind.
  HIBERNAUT_NETWORK: "user",
});
const platform = await startPlatform();
try {
  const file = join(ROOT, "README.md");
  const readme = await readFile(file, "utf8");
  const entries = await record(tourOf(readme), { proxyUrl: platform.proxyUrl ?? "", env: process.env });
  await writeFile(join(ROOT, TAPE), tapeText(entries));
  await writeFile(file, withExcerpt(readme, entries));
  process.stdout.write(`Recorded ${entries.length} commands in ${TAPE}, and README.md shows some of them.\n`);
} finally {
  // The tour ends with its app destroyed; after a failure, this ends what is left.
  await platform.call("DELETE", "/apps/demo?force=true").catch(() => {});
  await platform.stop();
  await rm(dataDir, { recursive: true, force: true });
}
