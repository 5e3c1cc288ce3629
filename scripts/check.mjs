/**
 * The house's checks: types, lint, promises, format, imports, prose. `npm run check`.
 *
 * Prints a line for each, with what it found when it failed, and exits 1 when any did.
 * `--json FILE` writes the outcomes for test.mjs, which counts them as tests. `--part first` is what `npm test` runs, `--part rest`
 * what `npm run test:all` does.
 */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const DEADLINE_MS = 180_000;

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {string[]} command
 * @property {RegExp} [read] where the output says how many files were read: a check that read nothing proves nothing
 * @property {number} [least] the fewest files that it reads; LEAST_FILES unless given
 * @property {boolean} [rest] found seldom, and never what a test would find: it can wait for `npm run test:all`
 */

/** Checks the types in a few seconds. `typescript` itself is 5, whose API the tools that read types still need. */
const TSC = "node_modules/typescript-7/bin/tsc";

/** More than CPUs only do the same work several times. More than four, the default, would do so, too. */
const CHECKERS = String(Math.min(availableParallelism(), 4));

/** What was found the last time: an eighth of the work is left when little has changed. */
const KNOWN_TYPES = ".build/types.tsbuildinfo";

const DEPCRUISE = "node_modules/dependency-cruiser/bin/dependency-cruiser.mjs";

/** @type {Step[]} */
const STEPS = [
  {
    name: "types",
    command: [
      ...[process.execPath, TSC, "--noEmit", "--pretty", "false", "--checkers", CHECKERS],
      ...["--incremental", "--tsBuildInfoFile", KNOWN_TYPES],
    ],
  },
  {
    name: "types of the dashboard",
    command: [process.execPath, TSC, "-p", "packages/dashboard/src", "--pretty", "false"],
  },
  { name: "lint", command: ["oxlint", "--deny-warnings"], read: / on (\d+) files? / },
  {
    // Reads all types once more, which takes ten times as long as the rest of lint.
    name: "lint of types",
    command: ["oxlint", "--type-aware", "--deny-warnings"],
    read: / on (\d+) files? /,
    rest: true,
  },
  {
    name: "promises",
    command: [process.execPath, "scripts/check-promises.mjs"],
    read: /Read (\d+) files?/,
    least: 900,
    rest: true,
  },
  {
    name: "format",
    command: [
      "biome",
      "ci",
      "--linter-enabled=false",
      "--assist-enabled=false",
      "--reporter=concise",
      "--colors=off",
      ".",
    ],
    read: /Checked (\d+) files?/,
  },
  {
    name: "imports",
    command: [process.execPath, DEPCRUISE, "packages/*/src", "services/*/src"],
    read: /\((\d+) modules/,
    rest: true,
  },
  {
    name: "prose",
    command: [process.execPath, "scripts/check-prose.mjs"],
    read: /Read (\d+) files?/,
    least: 15,
    rest: true,
  },
];
const LEAST_FILES = 30;

/**
 * @param {Step} step
 * @returns {Promise<{name: string, ok: boolean, seconds: number, output: string}>}
 */
function check(step) {
  const [command = "", ...args] = step.command;
  const begun = performance.now();
  return new Promise((done) => {
    const child = spawn(command, args, {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: DEADLINE_MS,
      // node_modules/.bin holds the tools and, where the machine's is older, the right Node.
      env: {
        ...process.env,
        NO_COLOR: "1",
        PATH: [dirname(process.execPath), join(ROOT, "node_modules/.bin"), process.env.PATH].join(delimiter),
      },
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (/** @type {string} */ text) => (output += text));
    child.stderr.setEncoding("utf8").on("data", (/** @type {string} */ text) => (output += text));
    /** @param {boolean} ok */
    const end = (ok) =>
      done({ name: step.name, ok, seconds: (performance.now() - begun) / 1000, output: output.trim() });
    child.on("error", (error) => {
      output += error.message;
      end(false);
    });
    child.on("close", (code, signal) => {
      if (signal !== null) output += `\nended by ${signal}; the limit is ${DEADLINE_MS / 1000} s`;
      const least = step.least ?? LEAST_FILES;
      const read = step.read === undefined ? least : Number(step.read.exec(output)?.[1] ?? 0);
      if (read < least) output += `\nread only ${read} files; expected at least ${least}`;
      end(code === 0 && read >= least);
    });
  });
}

const { values: options } = parseArgs({ options: { json: { type: "string" }, part: { type: "string" } } });
const { json: file, part } = options;
if (part !== undefined && part !== "first" && part !== "rest") throw new Error("--part takes first or rest.");
const steps = STEPS.filter(({ rest = false }) => part === undefined || rest === (part === "rest"));

// The types that the client has of the API are made from its schemas, and most checks read them.
const first = await check({ name: "types of the API", command: [process.execPath, "scripts/client-types.mjs"] });
const results = [first, ...(await Promise.all(steps.map(check)))];
for (const { name, ok, seconds, output } of results) {
  console.log(`${ok ? "ok  " : "FAIL"} ${name} (${seconds.toFixed(1)} s)`);
  if (!ok) console.log(output.replace(/^/gm, "  "));
}
if (file !== undefined) writeFileSync(file, JSON.stringify(results.map(({ name, ok }) => ({ name, ok }))));
process.exitCode = results.every((result) => result.ok) ? 0 : 1;
