/** Finds the Node that runs the platform: the one that npm installed, or the host's own if it is new enough. */
import { execFileSync } from "node:child_process";
import { BROUGHT_NODE, isNewEnough, NODE_WANTED } from "../../packages/cli/bin/newer-node.js";
import { SetupError } from "./run.mjs";

export { isNewEnough, NODE_WANTED, ROOT } from "../../packages/cli/bin/newer-node.js";

/**
 * Returns the path of a Node that is new enough. If there is none, throws a SetupError that says what to do.
 *
 * @returns {string}
 */
export function nodeBinary() {
  if (isNewEnough(versionOf(BROUGHT_NODE))) return BROUGHT_NODE;
  if (isNewEnough(process.version)) return process.execPath;
  throw new SetupError(
    `Hibernaut needs Node ${NODE_WANTED} or later, and npm has not installed one that runs here. Run npm run setup, or install Node ${NODE_WANTED}.`,
  );
}

/** @param {string} file */
function versionOf(file) {
  try {
    return execFileSync(file, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "";
  }
}
