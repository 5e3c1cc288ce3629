/** Where the programs are that only tests and benches use: unpacked beside us, or installed on the system. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./node.mjs";

/** `npm run setup -- --tests` unpacks here what is not installed. */
export const TEST_TOOLS = join(ROOT, ".build/test-tools");

/**
 * The path of the program; its plain name when it is in neither place.
 *
 * @param {string} name
 */
export function findTool(name) {
  // Servers are in sbin, which users of Debian do not have in their PATH.
  const folders = ["usr/bin", "usr/sbin"].flatMap((folder) => [join(TEST_TOOLS, folder), join("/", folder)]);
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? name;
}

/** The environment for such a program: libraries that were unpacked with it are found there. */
export function toolEnvironment() {
  const base = join(TEST_TOOLS, "usr/lib");
  const folders = existsSync(base) ? [base, ...readdirSync(base).map((name) => join(base, name))] : [];
  return { ...process.env, LD_LIBRARY_PATH: folders.join(":") };
}
