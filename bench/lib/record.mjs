/** What every recorded result has in common: by which command, when, at which commit and on what it was measured. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus, loadavg, release } from "node:os";
import { join, relative } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const RESULTS = join(ROOT, "bench/results");

/**
 * What is measured on. Call it before the first sample: afterwards the load is the bench's own, and the commit may be
 * another one.
 */
export function environment() {
  return {
    command: command(),
    date: new Date().toISOString(),
    commit: commit(),
    host: { cpu: cpus()[0]?.model, cpus: cpus().length, kernel: release(), load: loadavg() },
    node: process.version,
  };
}

/**
 * Replaces the recorded result of a bench.
 *
 * @param {string} name The file in `bench/results`, without its ending.
 * @param {ReturnType<typeof environment> & Record<string, unknown>} record The environment, and
 *   what this bench adds.
 */
export function writeResult(name, record) {
  writeFileSync(join(RESULTS, `${name}.json`), `${JSON.stringify(record, null, 2)}\n`);
}

/** The command that was run, options included. */
function command() {
  const { npm_lifecycle_event: script } = process.env;
  const [, file = "", ...options] = process.argv;
  if (script === undefined) return ["node", relative(ROOT, file), ...options].join(" ");
  return [`npm run ${script}`, ...(options.length > 0 ? ["--", ...options] : [])].join(" ");
}

/**
 * The commit that is checked out, with `-dirty` when files differ from it; null outside a Git repository. Results don't
 * count: the bench before this one may have just written its own.
 */
function commit() {
  try {
    const [head, changes] = [git("rev-parse", "HEAD"), git("status", "--porcelain", "--", ".", ":!bench/results")];
    return changes === "" ? head : `${head}-dirty`;
  } catch {
    return null;
  }
}

/** @param {string[]} args */
function git(...args) {
  return execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}
