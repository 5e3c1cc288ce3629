/** npm dependencies: installed if they differ from the lock file. */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { ROOT } from "./node.mjs";
import { run } from "./run.mjs";

const MODULES = join(ROOT, "node_modules");
const STAMP = join(MODULES, ".hibernaut-stamp");

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
  if (!matches(lock, await readFile(join(MODULES, ".package-lock.json"), "utf8").catch(() => "{}"))) {
    step.show();
    const args = [
      "ci",
      "--ignore-scripts",
      "--include=dev",
      "--include=optional",
      "--no-audit",
      "--no-fund",
      "--loglevel=error",
    ];
    await run("npm", args, {
      cwd: ROOT,
      env: npmEnvironment(),
      onLine: step.detail,
      what: "npm ci",
      next: "Check the network, then run npm run setup again.",
    });
  }
  await writeFile(STAMP, stamp);
}

/**
 * Whether npm's own record of what it installed has every package of the lock file, in the same version. Packages for
 * other platforms are optional and may be absent.
 *
 * @param {string} lock
 * @param {string} installed
 */
function matches(lock, installed) {
  const wanted = Object.entries(JSON.parse(lock).packages ?? {});
  const found = JSON.parse(installed).packages ?? {};
  return wanted.every(([path, entry]) => {
    if (!path.includes("node_modules/")) return true;
    return found[path] ? found[path].version === entry.version : entry.optional === true;
  });
}

/** The environment for npm. It must run under the host's Node, because `npm ci` deletes the one in node_modules. */
export function npmEnvironment() {
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.startsWith(MODULES));
  return { ...process.env, PATH: path.join(delimiter), NODE_ENV: "development" };
}
