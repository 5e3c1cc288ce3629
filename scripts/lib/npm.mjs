/** npm dependencies: installed if they differ from the lock file. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { BROUGHT_NODE } from "../../packages/cli/bin/newer-node.js";
import { ROOT } from "./node.mjs";
import { run } from "./run.mjs";

const MODULES = join(ROOT, "node_modules");
const STAMP = join(MODULES, ".hibernaut-stamp");

const REPORT = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
const LIBC = REPORT.header.glibcVersionRuntime ? "glibc" : "musl";

const CI = [
  "ci",
  "--ignore-scripts",
  "--include=dev",
  "--include=optional",
  "--no-audit",
  "--no-fund",
  "--loglevel=error",
];

/**
 * Runs `npm ci`, unless node_modules already matches package-lock.json. Install scripts of packages are not run: we
 * need none of them, and one would try to compile.
 *
 * @param {import("./progress.mjs").Step} step
 */
export async function installDependencies(step) {
  const lock = await readFile(join(ROOT, "package-lock.json"), "utf8");
  const stamp = `${createHash("sha256").update(lock).digest("hex")}\n`;
  if ((await readFile(STAMP, "utf8").catch(() => "")) === stamp) return;
  if ((await missing(lock)).length > 0) {
    step.show();
    await npmCi(npmEnvironment(), step);
    if ((await missing(lock)).length > 0 && existsSync(BROUGHT_NODE)) await npmCiUnderBroughtNode(step);
  }
  await writeFile(STAMP, stamp);
}

/**
 * npm leaves out an optional package whose `engines` do not accept the Node that npm runs under, without a word: under
 * Debian 12's Node 18, these are the compiled halves of the test runner and the linter. They run under the Node that the
 * first `npm ci` brought, so npm does too, from a copy, because `npm ci` deletes node_modules first.
 *
 * @param {import("./progress.mjs").Step} step
 */
async function npmCiUnderBroughtNode(step) {
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-node-"));
  try {
    await copyFile(BROUGHT_NODE, join(folder, "node"));
    const env = npmEnvironment();
    await npmCi({ ...env, PATH: `${folder}${delimiter}${env.PATH}` }, step);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {import("./progress.mjs").Step} step
 */
async function npmCi(env, step) {
  const next = "Check the network, then run npm run setup again.";
  await run("npm", CI, { cwd: ROOT, env, onLine: step.detail, what: "npm ci", next });
}

/**
 * The packages of the lock file that npm's own record of what it installed does not have in the same version. Packages
 * for other platforms are not missed.
 *
 * @param {string} lock
 * @returns {Promise<string[]>} paths such as `node_modules/vitest`
 */
async function missing(lock) {
  const record = await readFile(join(MODULES, ".package-lock.json"), "utf8").catch(() => "{}");
  const found = JSON.parse(record).packages ?? {};
  return Object.entries(JSON.parse(lock).packages ?? {})
    .filter(([path, entry]) => path.includes("node_modules/") && found[path]?.version !== entry.version)
    .filter(([path, entry]) => found[path] || !entry.optional || isForThisPlatform(entry))
    .map(([path]) => path);
}

/**
 * Whether an optional package is compiled for this platform. One that names no platform is needed only by those for
 * others.
 *
 * @param {{ os?: string[], cpu?: string[], libc?: string[] }} entry
 */
function isForThisPlatform({ os, cpu, libc }) {
  if (os === undefined || cpu === undefined) return false;
  return os.includes(process.platform) && cpu.includes(process.arch) && (libc === undefined || libc.includes(LIBC));
}

/** The environment for npm. It must run under the host's Node, because `npm ci` deletes the one in node_modules. */
export function npmEnvironment() {
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.startsWith(MODULES));
  return { ...process.env, PATH: path.join(delimiter), NODE_ENV: "development" };
}
