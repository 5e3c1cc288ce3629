/**
 * Vitest's setup file: gives the tests of a file a home of their own, also without `npm test` around them, and watches over
 * the programs that they start.
 */
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RUN_VARIABLE } from "../leftovers.mjs";
import { atHome, guarded, makeHome } from "./test-home.mjs";

// `npm test` has moved the home already, into the directory of its run.
const inRun = process.env[RUN_VARIABLE] !== undefined;
const home = inRun ? join(tmpdir(), "home") : makeHome(join(tmpdir(), `hibernaut-tests-of-${process.getuid?.()}`));
if (!inRun) {
  const own = atHome(process.env, home);
  for (const name of Object.keys(process.env)) if (!(name in own)) delete process.env[name];
  Object.assign(process.env, own);
}

/** Files that share a process load this module once for each. */
const GUARDED = Symbol.for("hibernaut.guarded");
if (!(GUARDED in childProcess.ChildProcess)) guardPrograms();

function guardPrograms() {
  Object.defineProperty(childProcess.ChildProcess, GUARDED, { value: true });

  /**
   * What all ways to start a program without waiting for it come to.
   *
   * @type {{spawn(options: {envPairs?: string[]}): unknown}}
   */
  const prototype = /** @type {any} */ (childProcess.ChildProcess.prototype);
  const { spawn } = prototype;
  prototype.spawn = function (options) {
    return spawn.call(this, { ...options, envPairs: guarded(options.envPairs ?? [], home) });
  };

  for (const name of /** @type {const} */ (["execFileSync", "execSync", "spawnSync"])) {
    const original = /** @type {(...args: any[]) => any} */ (childProcess[name]);
    const withHome = (/** @type {any[]} */ ...args) =>
      original(...args.map((arg) => (arg?.env === undefined ? arg : { ...arg, env: guardedRecord(arg.env) })));
    Object.assign(childProcess, { [name]: withHome });
  }
  syncBuiltinESMExports();
}

/** @param {NodeJS.ProcessEnv} environment */
function guardedRecord(environment) {
  const pairs = Object.entries(environment).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
  return Object.fromEntries(
    guarded(pairs, home).map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]),
  );
}
