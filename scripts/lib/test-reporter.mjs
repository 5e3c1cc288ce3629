/**
 * A Vitest reporter used with the default one. It prints how far the run is, and writes what `npm test` counts to the
 * file that `HIBERNAUT_TEST_REPORT` names.
 */
import { renameSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { failureLine, minutes } from "./test-summary.mjs";

const EVERY_MS = 20_000;

/** @typedef {import("./test-summary.mjs").Report} Report */

/**
 * What a test counts for: usually one. One that ran tests in another machine says in its `meta` how many those were.
 *
 * @param {import("vitest/node").TestCase} test
 * @returns {{ passed: number, failed: number }}
 */
function countOf(test) {
  const { state } = test.result();
  const { inside } = /** @type {{ inside?: { passed: number, failed: number } }} */ (test.meta());
  if (inside !== undefined && state === "passed") return inside;
  const failed = state === "failed" ? 1 : 0;
  return { passed: inside?.passed ?? (state === "passed" ? 1 : 0), failed: Math.max(failed, inside?.failed ?? 0) };
}

/**
 * What failed in a file: a line for each failed test, and for each error outside of tests.
 *
 * @param {import("vitest/node").TestModule} module
 */
function failuresOf(module) {
  const path = relative(process.cwd(), module.moduleId);
  const outside = [module, ...module.children.allSuites()].flatMap((part) =>
    part.errors().map((error) => failureLine([path], error.message)),
  );
  const tests = [...module.children.allTests("failed")].map((test) =>
    failureLine([path, test.fullName], test.result().errors?.[0]?.message),
  );
  return [...outside, ...tests];
}

export default class TestReporter {
  /** @type {Report} */
  #report = { passed: 0, failed: 0, files: [], failures: [] };
  #files = 0;
  #began = performance.now();
  #told = performance.now();

  /** @param {readonly unknown[]} specifications */
  onTestRunStart(specifications) {
    this.#files = specifications.length;
  }

  /** @param {import("vitest/node").TestModule} module */
  onTestModuleEnd(module) {
    const counts = [...module.children.allTests()].map(countOf);
    const failed = counts.reduce((sum, count) => sum + count.failed, 0);
    this.#report.passed += counts.reduce((sum, count) => sum + count.passed, 0);
    // A file that could not be loaded, or whose hooks failed, has failed without a failed test.
    this.#report.failed += module.state() === "failed" ? Math.max(failed, 1) : failed;
    const failures = failuresOf(module);
    this.#report.failures.push(...failures);
    // At once: a run that is broken off says what it has found.
    for (const failure of failures) console.log(`   FAILED ${failure}`);
    const { collectDuration, setupDuration, duration } = module.diagnostic();
    const path = relative(process.cwd(), module.moduleId);
    this.#report.files.push({ path, ms: Math.round(collectDuration + setupDuration + duration) });
    this.#write();
    this.#tell();
  }

  onTestRunEnd() {
    this.#write();
  }

  /** After every file, so that a run that hangs and is killed still counts. */
  #write() {
    const path = process.env.HIBERNAUT_TEST_REPORT;
    if (path === undefined) return;
    // In one step: killed in between, the report before stays.
    writeFileSync(`${path}.new`, JSON.stringify(this.#report));
    renameSync(`${path}.new`, path);
  }

  #tell() {
    const now = performance.now();
    const done = this.#report.files.length;
    if (now - this.#told < EVERY_MS || done === this.#files) return;
    this.#told = now;
    const { failed } = this.#report;
    const faults = failed === 0 ? "" : `, ${failed} failed`;
    console.log(`   ${done} of ${this.#files} files, ${minutes(now - this.#began)}${faults}`);
  }
}
