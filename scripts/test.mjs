/**
 * Runs the test suite: `npm test`, or `npm test -- lock` for the test files with the word "lock" in their path.
 * Sets up what is missing, runs types, lint and format of the checks, the unit tests and the tests on QEMU, looks for
 * leftovers, and lists the slowest files. The last line is the total.
 *
 * `npm run test:all` runs the tests and checks that `npm test` leaves out, as CONTRIBUTING.md says: those with
 * the tag `again`. `npm run test:long` runs what takes too long for both. `npm run test:kvm` runs chosen tests under KVM, and
 * `npm run test:cluster` runs stories through another host than the one that has the machines. All end the same way.
 *
 * Plain JavaScript for Node 18 and later, because it installs the Node that the tests run with.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { closeRun, endProcesses, findLeftovers, openRun } from "./leftovers.mjs";
import { planCluster } from "./lib/cluster-tests.mjs";
import { planKvm } from "./lib/kvm-tests.mjs";
import { chooseFiles, hasAgain, isAllAgain, isLong, listTestFiles } from "./lib/test-files.mjs";
import { runProgram } from "./lib/test-process.mjs";
import { minutes, slowest } from "./lib/test-summary.mjs";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
/** A stage that takes longer hangs, and is killed: `npm test` takes 8 minutes, and its stage far less than this. */
const DEADLINE_MS = 30 * 60_000;
/** `npm run test:all` takes half an hour on two quiet cores. This leaves room for a busy host. */
const ALL_DEADLINE_MS = 50 * 60_000;
/** An hour of soak, two hours of power cuts, half an hour of setups; on a busy host all of it takes longer. */
const LONG_DEADLINE_MS = 6 * 60 * 60_000;
/** A process that was told to end may need a moment. */
const LEFTOVERS_GRACE_MS = 5000;

const USAGE = `Usage: npm test [-- <word>...], and the same for npm run test:all, test:long, test:kvm and test:cluster

Sets up what is missing and runs the test files whose paths have one of the words, delimited by / . _ or -
(lock matches store/lock.test.ts but not clock.qemu.test.ts). Without words it runs all files.

npm run test:all runs the tests with the tag "again" and the checks that npm test leaves out.

HIBERNAUT_SOAK sets how long the soak of npm run test:long takes, such as 3m. Its default is 1h.
HIBERNAUT_POWER_CUTS sets how many power cuts it makes. Its default is 50.

npm run test:kvm runs chosen tests under KVM: on this host where it works, and otherwise in an emulated machine.
HIBERNAUT_NESTED_CYCLES sets how often a machine sleeps and wakes in there. Its default is 5.

npm run test:cluster runs the stories with all machines on another host of a cluster than the one that they talk to.
`;

const [first, ...rest] = process.argv.slice(2);
if (first === "--help") {
  process.stdout.write(USAGE);
  process.exit();
}
const again = first === "--all";
const kvm = first === "--kvm";
const cluster = first === "--cluster";
const long = first === "--long" || kvm || cluster;
// What runs once more has its files on the disk, as an owner has them. The rest takes up too much room.
const RUN = openRun({ inMemory: !long && !again });
const words = long || again ? rest : process.argv.slice(2);
const environment = {
  ...RUN.environment,
  ...(first === "--long" && { HIBERNAUT_LONG_TESTS: "1" }),
  ...(cluster && { HIBERNAUT_TEST_THROUGH: "peer" }),
};
/** For Vitest, besides the files. @type {string[]} */
const selection = long ? [] : [`--tagsFilter=${again ? "again" : "!again"}`];

/** Vitest's projects, by stage. Stages run one after another. */
const STAGES = long ? { long: ["long"], tests: ["unit*", "qemu*"] } : { tests: ["unit*", "qemu*"] };

/** @type {import("./lib/test-summary.mjs").Report} */
const sum = { passed: 0, failed: 0, files: [], failures: [] };

/** The first Node that is new enough: this one, or the one among the dependencies. */
function findNode() {
  const found = [process.execPath, join(ROOT, "node_modules/.bin/node")].find((path) => {
    if (!existsSync(path)) return false;
    return Number(execFileSync(path, ["-p", "process.versions.node"], { encoding: "utf8" }).split(".")[0]) >= 24;
  });
  if (found === undefined) throw new Error("no Node 24 was found; `npm run setup` brings it");
  return found;
}

/** @param {string} command @param {string[]} args @param {NodeJS.ProcessEnv} [more] */
function run(command, args, more = {}) {
  const isLongRun = long || args.some((arg) => arg.endsWith("/suite/run.mjs"));
  return runProgram(command, args, {
    cwd: ROOT,
    env: { ...environment, ...more },
    deadlineMs: isLongRun ? LONG_DEADLINE_MS : again ? ALL_DEADLINE_MS : DEADLINE_MS,
    onInterrupt: () => {
      endProcesses(RUN);
      closeRun(RUN);
    },
  });
}

/**
 * Adds what a report says. A report that is missing, or that knows of no failure of a program
 * that failed, counts as one failure.
 *
 * @param {string} name @param {boolean} succeeded @param {() => import("./lib/test-summary.mjs").Report} readReport
 */
function count(name, succeeded, readReport) {
  /** @type {import("./lib/test-summary.mjs").Report} */
  let report = { passed: 0, failed: 0, files: [], failures: [] };
  try {
    report = readReport();
  } catch (error) {
    if (succeeded) report.failed += 1;
    console.log(`${name}: no report: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!succeeded && report.failed === 0) {
    // Killed, or failed outside of all tests.
    report.failed = 1;
    report.failures.push(`${name}: failed, with no failed test; what it printed says more`);
  }
  sum.passed += report.passed;
  sum.failed += report.failed;
  sum.files.push(...report.files);
  sum.failures.push(...report.failures);
}

/** @param {string} node @param {string} reports @param {"first" | "rest"} part */
async function runChecks(node, reports, part) {
  const file = join(reports, "check.json");
  const succeeded = await run(node, [join(ROOT, "scripts/check.mjs"), "--part", part, "--json", file]);
  count("checks", succeeded, () => {
    const steps = /** @type {{ok: boolean}[]} */ (JSON.parse(readFileSync(file, "utf8")));
    const passed = steps.filter((step) => step.ok).length;
    return { passed, failed: steps.length - passed, files: [], failures: [] };
  });
}

/**
 * Packs the images of tests on QEMU where this checkout has none yet, which keeps one core busy for half a minute. If that
 * fails, Vitest's global setup does it again, and says why.
 *
 * @param {string} node
 */
async function packImages(node) {
  if (!(await run(node, [join(ROOT, "packages/platform/test/helpers/qemu-setup.ts")])))
    console.log("the images of tests on QEMU could not be packed next to the checks");
}

/** @param {string} node @param {string} reports @param {string} stage @param {string[]} projects @param {string[]} files */
async function runStage(node, reports, stage, projects, files) {
  const report = join(reports, `${stage}.json`);
  const reporters = ["--reporter=default", `--reporter=${join(ROOT, "scripts/lib/test-reporter.mjs")}`];
  const selected = projects.flatMap((project) => ["--project", project]);
  const vitest = [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", ...selected, "--passWithNoTests", ...selection];
  const began = performance.now();
  const succeeded = await run(node, [...vitest, ...reporters, ...files], {
    HIBERNAUT_TEST_REPORT: report,
    // What one process has compiled of the dependencies, the next ones need not. It goes with the reports.
    NODE_COMPILE_CACHE: join(reports, "compiled"),
  });
  count(stage, succeeded, () => JSON.parse(readFileSync(report, "utf8")));
  console.log(`${stage}: ${minutes(performance.now() - began)}\n`);
}

/** E2B's own tests are not in this repository, and take an hour under emulation. @param {string} node */
async function runSandboxSuite(node) {
  if (process.env.HIBERNAUT_E2B_SUITE === undefined) {
    console.log(
      "skipped: E2B's own tests of sandboxes. packages/sandboxes/suite/README.md says how to get and run them.\n",
    );
    return;
  }
  const succeeded = await run(node, [join(ROOT, "packages/sandboxes/suite/run.mjs")]);
  count("E2B's own tests", succeeded, () => ({ passed: succeeded ? 1 : 0, failed: 0, files: [], failures: [] }));
}

/** Whether a file may have tests of `npm test`, `test:all` or `test:long`. @param {string} file */
function belongs(file) {
  if (long) return isLong(ROOT, file);
  if (file.endsWith(".long.test.ts")) return false;
  return again ? hasAgain(ROOT, file) : !isAllAgain(ROOT, file);
}

/** Lists the files of this kind of run. @param {string} node @returns {string[]} */
function listFiles(node) {
  if (cluster) {
    const { files, names } = planCluster(ROOT);
    if (names !== "") selection.push(`--testNamePattern=${names}`);
    return files;
  }
  if (!kvm) return listTestFiles(ROOT).filter(belongs);
  const plan = planKvm(ROOT, node);
  console.log(`under KVM: ${plan.why}\n`);
  Object.assign(environment, plan.environment);
  return plan.files;
}

/** Returns the chosen files by stage; a stage may have none. @param {string} node */
function chooseStages(node) {
  const listed = listFiles(node);
  const { chosen, unknown } = chooseFiles(listed, words);
  for (const word of unknown) console.log(`no test file has the word "${word}" in its path`);
  sum.failed += unknown.length;
  const stageOf = (/** @type {string} */ file) => (file.endsWith(".long.test.ts") ? "long" : "tests");
  return Object.entries(STAGES).map(([stage, projects]) => ({
    stage,
    projects,
    files: chosen.filter((file) => stageOf(file) === stage),
  }));
}

/** Checks that the run left nothing behind on the host. Counts as one test. */
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
  const began = performance.now();
  const reports = mkdtempSync(join(tmpdir(), "hibernaut-reports-"));
  try {
    const stages = chooseStages(node);
    const onQemu = stages.some(({ files }) => files.some((file) => file.endsWith(".qemu.test.ts")));
    await Promise.all([
      !long && (!again || words.length === 0) && runChecks(node, reports, again ? "rest" : "first"),
      onQemu && packImages(node),
    ]);
    for (const { stage, projects, files } of stages)
      if (files.length > 0) await runStage(node, reports, stage, projects, files);
    if (again && words.length === 0) await runSandboxSuite(node);
    if (sum.files.length === 0) {
      console.log("no test ran");
      sum.failed += 1;
    }
  } finally {
    rmSync(reports, { recursive: true, force: true });
  }
  console.log(
    ["The slowest files:", ...slowest(sum.files), `All took ${minutes(performance.now() - began)}.`].join("\n"),
  );
  await checkLeftovers();
  for (const failure of sum.failures) console.log(`FAIL ${failure}`);
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
