/** Finds the Node that runs the platform: the one npm brought, or the machine's own when it is new enough. */
import { execFileSync } from "node:child_process";
import { BROUGHT_NODE, isNewEnough, NODE_WANTED } from "../../packages/cli/bin/newer-node.js";
import { SetupError } from "./run.mjs";

export { isNewEnough, NODE_WANTED, ROOT } from "../../packages/cli/bin/newer-node.js";

/**
 * The path of a Node that is new enough. Throws a SetupError that says what to do.
 *
 * @returns {string}
 */
export function nodeBinary() {
  if (isNewEnough(versionOf(BROUGHT_NODE))) return BROUGHT_NODE;
  if (isNewEnough(process.version)) return process.execPath;
  throw new SetupError(
    `Node ${NODE_WANTED} or later is needed, and npm did not bring one that runs here. Run npm run setup, or install Node ${NODE_WANTED}.`,
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
