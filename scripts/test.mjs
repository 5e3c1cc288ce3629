/**
 * Everything there is to test: `npm test`, or `npm test -- machines` for the test files with
 * "machines" in their path. Sets up what is missing, runs the checks, the unit tests and the
 * tests with real machines, and looks at what they left behind. Its last line is the sum.
 *
 * `npm run test:long` runs what takes longer than anyone waits for `npm test`, and ends the same way.
 *
 * Plain JavaScript for Node 18 and later: it brings the Node that the tests run with.
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { closeRun, findLeftovers, openRun } from "./leftovers.mjs";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
/** No run may hang: neither a person nor a server that tests waits for it. */
const DEADLINE_MS = 45 * 60_000;
const LONG_DEADLINE_MS = 3 * 60 * 60_000;

const USAGE = `Usage: npm test [-- <word>...], npm run test:long [-- <word>...]

Sets up what is missing and runs the tests whose paths have one of the words; all without any.
`;

const [first, ...rest] = process.argv.slice(2);
if (first === "--help") {
  process.stdout.write(USAGE);
  process.exit();
}
const RUN = openRun();
const long = first === "--long";
const filters = long ? rest : process.argv.slice(2);
const deadlineMs = long ? LONG_DEADLINE_MS : DEADLINE_MS;
const environment = { ...RUN.environment, ...(long && { HIBERNAUT_LONG_TESTS: "1" }) };

/**
 * Vitest's projects to run, each with the words that choose its files.
 *
 * @returns {[project: string, filters: string[]][]}
 */
function projects() {
  if (!long)
    return [
      ["unit", filters],
      ["qemu", filters],
    ];
  // Usual tests that do more of the same when HIBERNAUT_LONG_TESTS says that they may.
  const longer = ["packages/cli/test", "packages/platform/test"]
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((file) => join(folder, file)),
    )
    .filter((file) => file.endsWith(".qemu.test.ts"))
    .filter((file) => readFileSync(join(ROOT, file), "utf8").includes("helpers/long.ts"))
    .filter((file) => filters.length === 0 || filters.some((word) => file.includes(word)));
  return [["long", filters], ...(longer.length > 0 ? [/** @type {[string, string[]]} */ (["qemu", longer])] : [])];
}
/** A process that was told to end may need a moment. */
const LEFTOVERS_GRACE_MS = 5000;

const sum = { passed: 0, failed: 0 };

/** The first Node that is new enough: this one, or the one among the dependencies. */
function findNode() {
  const found = [process.execPath, join(ROOT, "node_modules/.bin/node")].find((path) => {
    if (!existsSync(path)) return false;
    return Number(execFileSync(path, ["-p", "process.versions.node"], { encoding: "utf8" }).split(".")[0]) >= 24;
  });
  if (found === undefined) throw new Error("no Node 24 was found; `npm run setup` brings it");
  return found;
}

/**
 * Runs a program with its output shown, and resolves to whether it succeeded.
 *
 * @param {string} command @param {string[]} args @returns {Promise<boolean>}
 */
function run(command, args) {
  return new Promise((done) => {
    // A process group of its own, so that a run that must be ended leaves no worker behind.
    const child = spawn(command, args, {
      cwd: ROOT,
      env: environment,
      stdio: ["ignore", "inherit", "inherit"],
      detached: true,
    });
    const end = () => {
      try {
        process.kill(-(child.pid ?? 0), "SIGKILL");
      } catch {
        // it has ended by itself
      }
    };
    const late = setTimeout(() => {
      console.log(`ended after ${deadlineMs / 60_000} minutes`);
      end();
    }, deadlineMs);
    const interrupted = () => {
      end();
      closeRun(RUN);
      process.exit(130);
    };
    process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
    /** @param {boolean} ok */
    const finish = (ok) => {
      clearTimeout(late);
      process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
      done(ok);
    };
    child.on("error", (error) => {
      console.log(error.message);
      finish(false);
    });
    child.on("close", (code) => finish(code === 0));
  });
}

/**
 * Adds what a report says. A report that is missing, or that knows of no failure of a program
 * that failed, counts as one failure.
 *
 * @param {string} name @param {boolean} succeeded @param {() => {passed: number, failed: number}} readReport
 */
function count(name, succeeded, readReport) {
  let report = { passed: 0, failed: 0 };
  try {
    report = readReport();
  } catch (error) {
    if (succeeded) report.failed += 1;
    console.log(`${name}: no report: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!succeeded && report.failed === 0) report.failed = 1;
  sum.passed += report.passed;
  sum.failed += report.failed;
}

/** @param {string} node @param {string} reports */
async function runChecks(node, reports) {
  const file = join(reports, "check.json");
  const succeeded = await run(node, [join(ROOT, "scripts/check.mjs"), "--json", file]);
  count("checks", succeeded, () => {
    const steps = /** @type {{ok: boolean}[]} */ (JSON.parse(readFileSync(file, "utf8")));
    const passed = steps.filter((step) => step.ok).length;
    return { passed, failed: steps.length - passed };
  });
}

/** @param {string} node @param {string} reports @param {string} project @param {string[]} words */
async function runTests(node, reports, project, words) {
  const file = join(reports, `${project}.json`);
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  const vitest = [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--project", project, "--passWithNoTests"];
  const succeeded = await run(node, [...vitest, ...reporters, ...words]);
  count(project, succeeded, () => {
    const report =
      /** @type {{numPassedTests: number, numFailedTests: number, testResults: {status: string, assertionResults: {status: string}[]}[]}} */ (
        JSON.parse(readFileSync(file, "utf8"))
      );
    // A file that could not be loaded, or whose hooks failed, has failed without a failed test.
    const files = report.testResults.filter(
      ({ status, assertionResults }) => status === "failed" && !assertionResults.some((one) => one.status === "failed"),
    );
    return { passed: report.numPassedTests, failed: report.numFailedTests + files.length };
  });
}

/** One test of its own: nothing of ours is left on the machine. */
async function checkLeftovers() {
  const look = () => findLeftovers(RUN);
  for (let waited = 0; look().length > 0 && waited < LEFTOVERS_GRACE_MS; waited += 100) await delay(100);
  const left = look();
  if (left.length === 0) sum.passed += 1;
  else sum.failed += 1;
  console.log(left.length === 0 ? "ok   nothing was left behind" : ["FAIL left behind:", ...left].join("\n  "));
}

async function main() {
  const { setup } = /** @type {{setup: (options: {tests: boolean}) => Promise<unknown>}} */ (
    await import(new URL("./setup.mjs", import.meta.url).href)
  );
  await setup({ tests: true });
  const node = findNode();
  const reports = mkdtempSync(join(tmpdir(), "hibernaut-reports-"));
  try {
    if (!long) await runChecks(node, reports);
    const counted = sum.passed + sum.failed;
    for (const [project, words] of projects()) await runTests(node, reports, project, words);
    if (sum.passed + sum.failed === counted) {
      console.log("no test ran");
      sum.failed += 1;
    }
  } finally {
    rmSync(reports, { recursive: true, force: true });
  }
  await checkLeftovers();
}

try {
  await main();
} catch (error) {
  console.log(error);
  sum.failed += 1;
} finally {
  closeRun(RUN);
}
process.exitCode = sum.failed > 0 ? 1 : 0;
console.log(`${sum.passed} passed, ${sum.failed} failed`);
