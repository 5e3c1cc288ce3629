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

/** What was unpacked beside the programs is found there; what is not, where the system has it. */
export function libraryPath() {
  const base = join(TEST_TOOLS, "usr/lib");
  const folders = existsSync(base) ? readdirSync(base).filter((name) => name.endsWith("-linux-gnu")) : [];
  return [...folders.map((name) => join(base, name)), process.env.LD_LIBRARY_PATH ?? ""].filter(Boolean).join(":");
}

/** The environment for such a program. */
export function toolEnvironment() {
  return { ...process.env, LD_LIBRARY_PATH: libraryPath() };
}
