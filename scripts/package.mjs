#!/usr/bin/env node
/**
 * Makes what people install: a Debian package with everything that Hibernaut needs besides Debian's own packages, and
 * npm packages of the program and of the client. Sets up what is missing first.
 *
 * `npm run package [-- --out DIR] [-- --only deb|npm]`; prints the paths of what it made. Plain JavaScript for Node 18 and
 * later, which hands over to the Node that the setup installs.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { nodeBinary, ROOT } from "./lib/node.mjs";
import { createProgress } from "./lib/progress.mjs";
import { SetupError } from "./lib/run.mjs";
import { setup } from "./setup.mjs";

const USAGE = `Usage: npm run package [-- --out DIR] [-- --only deb|npm]

  --out DIR    where the packages go (default: .build/packages)
  --only KIND  only the Debian package, or only the npm packages
`;

try {
  await main();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`Error: ${error.message}\n`);
  process.exitCode = 1;
}

async function main() {
  const { values } = readOptions();
  if (values.help) return void process.stdout.write(USAGE);
  const { out = join(ROOT, ".build/packages"), only } = values;
  if (only !== undefined && only !== "deb" && only !== "npm")
    throw new SetupError("--only takes deb or npm. See `npm run package -- --help`.");
  await setup({ quiet: true });
  if (realpathSync(nodeBinary()) !== realpathSync(process.execPath)) {
    const { status } = spawnSync(nodeBinary(), process.argv.slice(1), { stdio: "inherit" });
    process.exitCode = status ?? 1;
    return;
  }
  const [{ makeDebianPackage }, { makeNpmPackages }] = await Promise.all([
    import("./lib/package/debian.mjs"),
    import("./lib/package/npm.mjs"),
  ]);
  mkdirSync(resolve(out), { recursive: true });
  const work = mkdtempSync(join(tmpdir(), "hibernaut-package-"));
  const progress = createProgress(only === undefined ? 2 : 1, { everyStep: true });
  /** @type {string[]} */
  const made = [];
  try {
    if (only !== "npm")
      await progress.step("Debian package", async () =>
        made.push(await makeDebianPackage(join(work, "deb"), resolve(out))),
      );
    if (only !== "deb")
      await progress.step("npm packages", async () =>
        made.push(...(await makeNpmPackages(join(work, "npm"), resolve(out)))),
      );
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  process.stdout.write(`${made.join("\n")}\n`);
}

function readOptions() {
  try {
    return parseArgs({
      options: { out: { type: "string" }, only: { type: "string" }, help: { type: "boolean", short: "h" } },
    });
  } catch (error) {
    throw new SetupError(`${/** @type {Error} */ (error).message} See \`npm run package -- --help\`.`);
  }
}
