#!/usr/bin/env node
/** `npm run orders`: the orders service alone, on this machine, with the Node that the set-up brings. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { installDependencies } from "./lib/npm.mjs";
import { nodeBinary, ROOT } from "./lib/node.mjs";
import { createProgress } from "./lib/progress.mjs";
import { SetupError } from "./lib/run.mjs";

try {
  // The service needs nothing else of the set-up: no Debian package, no guest bundle.
  await createProgress(1).step("npm dependencies", installDependencies);
  const child = spawn(nodeBinary(), [join(ROOT, "services/orders/src/main.ts"), ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  // A terminal tells the whole group; anyone else tells us alone.
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
    process.on(signal, () => process.stdin.isTTY || child.kill(signal));
  }
  child.on("exit", (code) => {
    process.exitCode = code ?? 1;
  });
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
