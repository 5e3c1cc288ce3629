/**
 * A home of its own for tests: neither they nor the programs that they start read or write that of the person who runs them, or
 * find the platform that runs on this host. Plain JavaScript for Node 18 and later.
 */
import { mkdirSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";

/**
 * The variables of ours that choose what tests do. All others are settings of a platform or of the CLI, which tests set
 * themselves.
 */
const CHOICES =
  /^HIBERNAUT_(TEST_\w+|FUZZ_\w+|NESTED_\w+|POWER_\w+|LONG_TESTS|ALL_TESTS|MOVES|SLOW_FACTOR|SOAK|TORTURE_S|TORTURE_SEED)$/;

/** Where programs look for a user's files, relative to the home. */
const FOLDERS = {
  HOME: "",
  XDG_CONFIG_HOME: ".config",
  XDG_DATA_HOME: ".local/share",
  XDG_CACHE_HOME: ".cache",
  XDG_STATE_HOME: ".local/state",
};

/**
 * Returns an environment without the real home and without settings of a platform. npm keeps its own configuration, which
 * may say where packages come from.
 *
 * @param {NodeJS.ProcessEnv} environment @param {string} home @returns {NodeJS.ProcessEnv}
 */
export function atHome(environment, home) {
  const kept = Object.entries(environment).filter(([name]) => !name.startsWith("HIBERNAUT_") || CHOICES.test(name));
  const folders = Object.entries(FOLDERS).map(([name, folder]) => [name, join(home, folder)]);
  const npm = { npm_config_userconfig: environment.npm_config_userconfig ?? join(homedir(), ".npmrc") };
  return { ...npm, ...Object.fromEntries(kept), ...Object.fromEntries(folders) };
}

/**
 * Returns the environment of a program that a test starts, with a home and a data directory of its own where the test
 * names none. Throws if the test gives it the real home.
 *
 * @param {readonly string[]} pairs `NAME=value` @param {string} home @returns {string[]}
 */
export function guarded(pairs, home) {
  const named = new Set(pairs.map((pair) => pair.slice(0, pair.indexOf("="))));
  const real = pairs.find((pair) => pair === `HOME=${userInfo().homedir}`);
  if (real !== undefined)
    throw new Error(`a test starts a program with ${real}, the home of the person who runs the tests`);
  const added = named.has("HOME") ? [] : [`HOME=${home}`];
  // Without either, the CLI asks the platform that runs as a service on this host.
  const found = named.has("HIBERNAUT_DATA_DIR") || named.has("XDG_CONFIG_HOME");
  return [...pairs, ...added, ...(found ? [] : [`HIBERNAUT_DATA_DIR=${join(home, "data")}`])];
}

/** Makes the home of a run. @param {string} directory @returns {string} */
export function makeHome(directory) {
  const home = join(directory, "home");
  mkdirSync(home, { recursive: true });
  return home;
}
