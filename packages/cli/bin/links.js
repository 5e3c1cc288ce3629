/**
 * `hibernaut` and `hib` on the PATH: links that `npm run setup -- --link` makes and `hibernaut uninstall` removes.
 * Anything else of these names belongs to somebody, and stays.
 */
import { existsSync, lstatSync, mkdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { ROOT } from "./newer-node.js";

const NAMES = ["hibernaut", "hib"];
const BIN = `${ROOT}packages/cli/bin`;
const LAUNCHER = join(BIN, "hibernaut");
/** In the PATH of every user of Debian and Ubuntu, and not touched by packages. */
const FOR_ALL = "/usr/local/bin";

/**
 * Where the links belong: `/usr/local/bin` for root, else `~/.local/bin`, unless HIBERNAUT_LINK_FOLDER names another.
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
 * Makes the links that are missing; the folder, too.
 *
 * @param {string} folder
 * @returns {{ links: string[], foreign: string[] }} the links that are there now, and what is in the way of others
 */
export function makeLinks(folder) {
  mkdirSync(folder, { recursive: true });
  const paths = NAMES.map((name) => join(folder, name));
  const foreign = paths.filter((path) => isThere(path) && !isOurs(path));
  const links = paths.filter((path) => !foreign.includes(path));
  for (const path of links) {
    // One that leads to us by another way may not last: npm makes `node_modules/.bin` anew.
    rmSync(path, { force: true });
    symlinkSync(LAUNCHER, path);
  }
  return { links, foreign };
}

/**
 * @param {string} folder
 * @returns {string[]} the links that were removed
 */
export function removeLinks(folder) {
  const ours = NAMES.map((name) => join(folder, name)).filter((path) => isThere(path) && isOurs(path));
  for (const path of ours) rmSync(path);
  return ours;
}

/**
 * What to tell whoever asked for the links: first where they are, then what is not as it should be.
 *
 * @param {string} folder
 * @param {{ links: string[], foreign: string[] }} made
 * @param {NodeJS.ProcessEnv} environment
 * @returns {string[]}
 */
export function linkReport(folder, { links, foreign }, environment) {
  const lines = links.length === 0 ? [] : [`On the PATH: ${links.join(" and ")}.`];
  for (const path of foreign)
    lines.push(`${path} is something else and was left alone. Move it away and run this again.`);
  if (links.length > 0 && !(environment.PATH ?? "").split(delimiter).includes(folder)) {
    const home = `${environment.HOME}/`;
    const shown = folder.startsWith(home) ? `$HOME/${folder.slice(home.length)}` : folder;
    lines.push(
      `${folder} is not in your PATH yet. Add this line to ~/.profile, and run it in this terminal:`,
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
