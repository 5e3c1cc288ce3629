/**
 * What Hibernaut keeps in the real home and in the system's place, to see that tests leave it alone. Plain JavaScript for
 * Node 18 and later.
 */
import { readdirSync, statSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";

/** Relative to the home: what the CLI, `hibernaut build` and a platform without root write by default. */
const IN_HOME = [".config/hibernaut", ".cache/hibernaut", ".local/share/hibernaut/config.json"];
/** What a platform of root tells the CLI. Its other files change while it runs. */
const OF_ROOT = "/var/lib/hibernaut/config.json";

/**
 * Returns a line for each file that is there, with its size and the time of its last change.
 *
 * @param {string[]} [places] @returns {string[]}
 */
export function lookAtHome(places = [...IN_HOME.map((place) => join(userInfo().homedir, place)), OF_ROOT]) {
  return places.flatMap((place) => lines(place)).sort();
}

/** @param {string} path @returns {string[]} */
function lines(path) {
  try {
    const { size, mtimeMs } = statSync(path);
    return [`${path} ${size} ${mtimeMs}`, ...list(path).flatMap((name) => lines(join(path, name)))];
  } catch {
    return []; // none, or of another user
  }
}

/** @param {string} path */
function list(path) {
  try {
    return readdirSync(path);
  } catch {
    return []; // not a directory
  }
}
