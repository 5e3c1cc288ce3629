/**
 * `hibernaut` and `hib` on the PATH: links that `npm run setup -- --link` makes and `hibernaut uninstall` removes.
 * Anything else with these names belongs to someone else, and stays.
 */
import { existsSync, lstatSync, mkdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { ROOT } from "./newer-node.js";

const NAMES = ["hibernaut", "hib"];
const BIN = `${ROOT}packages/cli/bin`;
const LAUNCHER = join(BIN, "hibernaut");
/** In the PATH of every user of Debian and Ubuntu, and left alone by packages. */
const FOR_ALL = "/usr/local/bin";

/**
 * Where the links belong: `/usr/local/bin` for root, `~/.local/bin` otherwise, unless HIBERNAUT_LINK_FOLDER is set.
 *
 * @param {NodeJS.ProcessEnv} environment
 * @param {number | undefined} user
 */
export function linkFolder(environment, user = process.getuid?.()) {
  return (
    environment.HIBERNAUT_LINK_FOLDER || (user === 0 ? FOR_ALL : join(environment.HOME || homedir(), ".local/bin"))
  );
}

/**
 * Creates the missing links, and their directory.
 *
 * @param {string} directory
 * @returns {{ links: string[], foreign: string[] }} the links that are there now, and what is in the way of others
 */
export function makeLinks(directory) {
  mkdirSync(directory, { recursive: true });
  const paths = NAMES.map((name) => join(directory, name));
  const foreign = paths.filter((path) => isThere(path) && !isOurs(path));
  const links = paths.filter((path) => !foreign.includes(path));
  for (const path of links) {
    // A link that leads here by another way may not last: npm recreates `node_modules/.bin`.
    rmSync(path, { force: true });
    symlinkSync(LAUNCHER, path);
  }
  return { links, foreign };
}

/**
 * @param {string} directory
 * @returns {string[]} the links that were removed
 */
export function removeLinks(directory) {
  const ours = NAMES.map((name) => join(directory, name)).filter((path) => isThere(path) && isOurs(path));
  for (const path of ours) rmSync(path);
  return ours;
}

/**
 * What to tell the user: first where the links are, then what is wrong.
 *
 * @param {string} directory
 * @param {{ links: string[], foreign: string[] }} made
 * @param {NodeJS.ProcessEnv} environment
 * @returns {string[]}
 */
export function linkReport(directory, { links, foreign }, environment) {
  const lines = links.length === 0 ? [] : [`On the PATH: ${links.join(" and ")}.`];
  for (const path of foreign)
    lines.push(`${path} is something else and was left alone. Move it away and run this again.`);
  if (links.length > 0 && !(environment.PATH ?? "").split(delimiter).includes(directory)) {
    const home = `${environment.HOME}/`;
    const shown = directory.startsWith(home) ? `$HOME/${directory.slice(home.length)}` : directory;
    lines.push(
      `${directory} is not in your PATH yet. Add this line to ~/.profile, and run it in this terminal:`,
      `  export PATH="${shown}:$PATH"`,
    );
  }
  return lines;
}

/** @param {string} path */
function isThere(path) {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** @param {string} path */
function isOurs(path) {
  if (!lstatSync(path).isSymbolicLink() || !existsSync(path)) return false;
  return [LAUNCHER, `${LAUNCHER}.js`].map((file) => realpathSync(file)).includes(realpathSync(path));
}
