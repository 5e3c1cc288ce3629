/** The summary that `npm test` prints at its end. Pure. */
import { stripVTControlCharacters } from "node:util";

/**
 * @typedef {object} Report
 * @property {number} passed
 * @property {number} failed
 * @property {{path: string, ms: number}[]} files How long each file took, including its hooks.
 * @property {string[]} failures A line for each: where, and the first line of why.
 */

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

/**
 * Returns the line that tells of a failure, for the end of a run of many minutes.
 *
 * @param {string[]} where
 * @param {string} [why] an error's message, of which the first line is told
 */
export function failureLine(where, why = "no reason was given") {
  return `${where.join(" > ")}: ${stripVTControlCharacters(why).split("\n")[0]}`;
}
