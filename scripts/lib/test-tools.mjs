/** Finds the programs that only tests and benches use: unpacked in the repository, or installed on the host. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./node.mjs";

/** Where `npm run setup -- --tests` unpacks what is not installed. */
export const TEST_TOOLS = join(ROOT, ".build/test-tools");

/**
 * Returns the path of the program, or its plain name if it is in neither place.
 *
 * @param {string} name
 */
export function findTool(name) {
  // Servers are in sbin, which is not in the PATH of ordinary users on Debian.
  const folders = ["usr/bin", "usr/sbin", "bin"].flatMap((folder) => [join(TEST_TOOLS, folder), join("/", folder)]);
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? name;
}

/**
 * Returns the directory of a Python package that Debian has.
 *
 * @param {string} name
 */
export function pythonPackage(name) {
  const path = join("usr/lib/python3/dist-packages", name);
  return [join(TEST_TOOLS, path), join("/", path)].find((folder) => existsSync(folder)) ?? name;
}

/** Where programs find shared libraries: first those unpacked with them, then the host's. */
export function libraryPath() {
  const base = join(TEST_TOOLS, "usr/lib");
  const folders = existsSync(base) ? readdirSync(base).filter((name) => name.endsWith("-linux-gnu")) : [];
  return [...folders.map((name) => join(base, name)), process.env.LD_LIBRARY_PATH ?? ""].filter(Boolean).join(":");
}

/** The environment to run such a program with. */
export function toolEnvironment() {
  return { ...process.env, LD_LIBRARY_PATH: libraryPath() };
}
