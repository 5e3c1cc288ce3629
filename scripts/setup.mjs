#!/usr/bin/env node
/**
 * Prepares a bare Debian or Ubuntu host: packages, npm dependencies, Node 24, the built CLI, the guest bundle and the
 * demo images. Needs Node 18 or later and npm. Does only what is missing; with nothing missing it takes less than a
 * second.
 *
 * `npm run setup` or `node scripts/setup.mjs [--link] [--tests] [--quiet]`.
 */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { linkFolder, linkReport, makeLinks } from "../packages/cli/bin/links.js";
import { installPackages, unpackTestPackages } from "./lib/debian.mjs";
import { nodeBinary, ROOT } from "./lib/node.mjs";
import { installDependencies } from "./lib/npm.mjs";
import { unpackOtherQemu } from "./lib/other-qemu.mjs";
import { createProgress } from "./lib/progress.mjs";
import { interrupted, run, SetupError } from "./lib/run.mjs";
import { installOldNodes } from "./lib/test-nodes.mjs";

export { nodeBinary } from "./lib/node.mjs";
export { SetupError } from "./lib/run.mjs";

const USAGE = `Usage: npm run setup [-- --link] [-- --tests] [-- --quiet]

Prepare this host (Debian or Ubuntu on x86-64): install what is missing, build what changed.

  --link    put \`hibernaut\` and \`hib\` on the PATH: in /usr/local/bin as root, otherwise in ~/.local/bin
  --tests   also install what only npm test needs
  --quiet   print nothing if there is nothing to do
`;

/**
 * @typedef {object} SetupOptions
 * @property {boolean} [link] Put the CLI on the PATH.
 * @property {boolean} [quiet] Print nothing if there is nothing to do; without it, one line says so.
 * @property {boolean} [tests] Also install what only `npm test` needs.
 */

/**
 * Prepares the host. Rejects with a SetupError whose message is written for people. During the setup, Ctrl-C ends the
 * programs it has started and the process itself (exit code 130).
 *
 * @param {SetupOptions} [options]
 * @returns {Promise<void>}
 */
export async function setup({ link = false, quiet = false, tests = false } = {}) {
  checkMachine();
  const start = performance.now();
  const progress = createProgress(tests ? 8 : 6);
  const onSignal = (/** @type {NodeJS.Signals} */ signal) => {
    progress.pause();
    void interrupted(signal);
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  try {
    await progress.step("Debian packages", (step) => installPackages(progress, step));
    if (tests) await progress.step("tools and older Node versions for the tests", installTestTools);
    await progress.step("npm dependencies", installDependencies);
    const node = nodeBinary();
    await progress.step("CLI and dashboard", (step) => runScript(node, "scripts/build.mjs", step));
    if (tests) await progress.step("types of the API", (step) => runScript(node, "scripts/client-types.mjs", step));
    await progress.step("launcher of the jail", (step) => runScript(node, "packages/jail/build.mjs", step));
    await progress.step("guest bundle", (step) => runScript(node, "packages/guest/build.mjs", step));
    await progress.step("demo images", (step) => runScript(node, "scripts/pack-demos.mjs", step));
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  if (progress.shown()) progress.say(`This host is ready (${seconds} s).`);
  else if (!quiet) progress.say("This host is ready; there was nothing to do.");
  if (link) linkCommands(progress.say);
}

/** @param {string} directory */
function linksIn(directory) {
  try {
    return makeLinks(directory);
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    throw new SetupError(
      `Cannot make links in ${directory} (${code}). Set HIBERNAUT_LINK_FOLDER to a directory of yours, or run this as root.`,
    );
  }
}

/** @param {(line: string) => void} say */
function linkCommands(say) {
  const directory = linkFolder(process.env);
  const made = linksIn(directory);
  for (const line of linkReport(directory, made, process.env)) say(line);
  if (!made.links.some((path) => path.endsWith("/hibernaut"))) throw new SetupError("`hibernaut` is not on the PATH.");
}

/** Rejects a host that cannot be prepared, with everything it lacks in one message. */
function checkMachine() {
  const lacks = [];
  if (process.platform !== "linux" || process.arch !== "x64") {
    lacks.push(`Hibernaut needs Linux on x86-64. This is ${process.platform} on ${process.arch}.`);
  } else if (!existsSync("/usr/bin/apt-get")) {
    lacks.push("Hibernaut needs Debian or Ubuntu. This host has no apt-get.");
  }
  if (Number(process.versions.node.split(".")[0]) < 18) {
    lacks.push(
      `The setup needs Node 18 or later. This is ${process.version}. Install the package nodejs of a current Debian or Ubuntu.`,
    );
  }
  if (lacks.length > 0) throw new SetupError(lacks.join("\n"));
}

/**
 * Debian's archive and npm's registry are other servers: the host waits for both at the same time.
 *
 * @param {import("./lib/progress.mjs").Step} step
 */
async function installTestTools(step) {
  const unpackAll = async () => {
    await unpackTestPackages(step);
    await unpackOtherQemu(step);
  };
  // Neither is left running when the other one fails.
  const ends = await Promise.allSettled([unpackAll(), installOldNodes(step)]);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

/**
 * Runs one of our build scripts, if the repository has it. The script itself decides whether there is anything to do.
 *
 * @param {string} node
 * @param {string} script
 * @param {import("./lib/progress.mjs").Step} step
 */
async function runScript(node, script, step) {
  if (!existsSync(join(ROOT, script))) return;
  await run(node, [script], { cwd: ROOT, onLine: step.detail, what: `node ${script}` });
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    const options = /** @type {const} */ ({
      link: { type: "boolean" },
      tests: { type: "boolean" },
      quiet: { type: "boolean" },
      help: { type: "boolean" },
    });
    const { values } = parseArgs({ options });
    if (values.help) process.stdout.write(USAGE);
    else await setup(values);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
