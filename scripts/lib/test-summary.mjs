/** The summary that `npm test` prints at its end. Pure. */

/**
 * @typedef {object} Report
 * @property {number} passed
 * @property {number} failed
 * @property {{path: string, ms: number}[]} files How long each file took, including its hooks.
 */

/** How many of the slowest files are listed. */
const NAMED = 10;

/**
 * Returns a duration as minutes and seconds: `1:05`.
 *
 * @param {number} ms
 */
export function minutes(ms) {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/**
 * Returns one line for each of the slowest files, slowest first.
 *
 * @param {Report["files"]} files
 */
export function slowest(files) {
  const named = [...files].sort((a, b) => b.ms - a.ms).slice(0, NAMED);
  return named.map(({ path, ms }) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${path}`);
}
