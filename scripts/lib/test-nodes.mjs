/** The older versions of Node that tests run our commands with, because users have them. */
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "./node.mjs";
import { npmEnvironment } from "./npm.mjs";
import { run } from "./run.mjs";

/** Debian 12 has 18, Ubuntu 24.04 has 18, Debian 13 has 20. 22 is the newest that is too old. */
export const OLD_NODES = /** @type {const} */ (["18", "20", "22"]);

// Not dependencies of the workspace, because each of them would install itself as `node_modules/.bin/node`.
const SOURCE = join(ROOT, "scripts/test-nodes");
const FOLDER = join(ROOT, ".build/test-nodes");

/**
 * Returns the path of one of {@link OLD_NODES}.
 *
 * @param {string} major
 */
export function oldNode(major) {
  return join(FOLDER, `node_modules/node${major}/bin/node`);
}

/**
 * Installs them in `.build/test-nodes`.
 *
 * @param {import("./progress.mjs").Step} step
 */
export async function installOldNodes(step) {
  const lock = await readFile(join(SOURCE, "package-lock.json"), "utf8");
  const stamp = join(FOLDER, ".installed");
  if ((await readFile(stamp, "utf8").catch(() => "")) === lock) return;
  step.show();
  await mkdir(FOLDER, { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) await copyFile(join(SOURCE, name), join(FOLDER, name));
  await copyFile(join(ROOT, ".npmrc"), join(FOLDER, ".npmrc"));
  await run("npm", ["ci", "--ignore-scripts", "--no-bin-links", "--loglevel=error"], {
    cwd: FOLDER,
    env: npmEnvironment(),
    onLine: step.detail,
    what: "npm ci of the older Node versions",
    next: "Check the network, then run npm run setup -- --tests again.",
  });
  // Headers and manuals take up more than half of the space.
  const unused = OLD_NODES.flatMap((major) => ["include", "share"].map((name) => join(oldNode(major), "../..", name)));
  await Promise.all(unused.map((folder) => rm(folder, { recursive: true, force: true })));
  await writeFile(stamp, lock);
}
