/** Bun, for the test that programs of its users can use the client. */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "./node.mjs";
import { npmEnvironment } from "./npm.mjs";
import { run } from "./run.mjs";

/** What was tried. */
const PACKAGE = "@oven/bun-linux-x64@1.4.5";
const FOLDER = join(ROOT, ".build/test-bun");

/**
 * Returns the path of the program. Installs it first if it is missing: 100 MB, which only `npm run test:long` needs.
 *
 * @returns {Promise<string>}
 */
export async function bun() {
  const program = join(FOLDER, "node_modules/@oven/bun-linux-x64/bin/bun");
  if (existsSync(program)) return program;
  await mkdir(FOLDER, { recursive: true });
  await run("npm", ["install", "--ignore-scripts", "--no-save", "--loglevel=error", "--prefix", FOLDER, PACKAGE], {
    cwd: FOLDER,
    env: npmEnvironment(),
    what: "npm install of Bun",
    next: "Check the network, then run the test again.",
  });
  return program;
}
