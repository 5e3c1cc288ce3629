#!/usr/bin/env node
/**
 * Starts the CLI, or the Node that can run it. Written for any Node that knows modules, because nothing may act
 * first and fail later: no `await` at the top, no `?.`, nothing newer.
 */
import { existsSync, realpathSync } from "node:fs";
import module from "node:module";
import os from "node:os";
import { fileURLToPath } from "node:url";
import { BROUGHT_NODE, isNewEnough, ROOT, startAgain, wayOut } from "./newer-node.js";
import { serveFlags } from "./serve-flags.js";

const dist = new URL("../dist/", import.meta.url);
const program = new URL("hibernaut.js", dist);
if (!isNewEnough(process.version)) {
  if (!existsSync(BROUGHT_NODE) || realpathSync(BROUGHT_NODE) === process.execPath) fail(wayOut(process.version));
  else startAgain(BROUGHT_NODE, process.argv.slice(1), (error) => fail(`${wayOut(process.version)} ${error.message}`));
} else if (existsSync(program)) {
  const { execPath, execArgv, argv, env } = process;
  const now = { execArgv, options: env.NODE_OPTIONS, cpus: os.availableParallelism() };
  const flags = serveFlags(argv.slice(2), now);
  // In place of this process: it keeps its number, which those who started it know.
  if (flags.length > 0 && process.execve)
    process.execve(execPath, [execPath, ...flags, ...execArgv, ...argv.slice(1)], env);
  // Kept next to the program, so that it is removed with it.
  module.enableCompileCache(fileURLToPath(new URL("cache", dist)));
  void import(program.href);
} else {
  fail(`Hibernaut is not built yet. Run \`npm run setup\` in ${ROOT}.`);
}

/** @param {string} message */
function fail(message) {
  process.stderr.write(`Error: ${message}\n`);
  process.exitCode = 1;
}
