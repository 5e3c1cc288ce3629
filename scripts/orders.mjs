#!/usr/bin/env node
/**
 * `npm run orders` runs the orders service alone, on this host, with the Node that the setup installs.
 * `npm run orders:seed` fills its database.
 */
import { join } from "node:path";
import { startAgain } from "../packages/cli/bin/newer-node.js";
import { nodeBinary, ROOT } from "./lib/node.mjs";
import { installDependencies } from "./lib/npm.mjs";
import { createProgress } from "./lib/progress.mjs";
import { SetupError } from "./lib/run.mjs";

const [word, ...rest] = process.argv.slice(2);
const [program, args] = word === "seed" ? ["seed/main.ts", rest] : ["main.ts", process.argv.slice(2)];

/** @param {Error} error */
function fail({ message }) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}

try {
  // The service needs nothing else from the setup: no Debian packages, no guest bundle.
  await createProgress(1).step("npm dependencies", installDependencies);
  startAgain(nodeBinary(), [join(ROOT, "services/orders/src", program), ...args], fail);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  fail(error);
}
