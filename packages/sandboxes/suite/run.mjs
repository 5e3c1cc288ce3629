#!/usr/bin/env node
/** `npm run conformance:e2b`: E2B's own tests against a platform of our own. README.md says more. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "../../../scripts/lib/node.mjs";
import { setup } from "../../../scripts/setup.mjs";
import { openRig } from "./rig.mjs";
import { judge, page, readReport } from "./rules.mjs";

/** A test may make several sandboxes, each of which takes seconds under emulation. */
const TEST_MS = 90_000;
/** A template is built in a machine of its own. */
const TEMPLATE_TEST_MS = 300_000;
/** Without a platform, nothing answers: what waits for an answer has failed by then. */
const CONTROL_TEST_MS = 10_000;
/** Two hours: the whole of it takes half an hour on two emulated cores. */
const RUN_MS = 2 * 3_600_000;
/** What their tests need besides the dependencies of the package, in which some are bundled. */
const TOOLS = ["vitest@4", "msw@2", "dotenv@16", "error-stack-parser-es@1"];
/** Other runtimes, and volumes, which are tested against a mock of theirs. */
const LEFT_OUT = ["tests/runtimes/**", "tests/volume/**", "tests/bundle/**"];

const { values: options } = parseArgs({
  options: { suite: { type: "string" }, only: { type: "string" }, record: { type: "boolean", default: false } },
});
const source = resolve(options.suite ?? process.env["HIBERNAUT_E2B_SUITE"] ?? "");
if (
  (options.suite ?? process.env["HIBERNAUT_E2B_SUITE"]) === undefined ||
  !existsSync(join(source, "tests/setup.ts"))
) {
  const readme = "packages/sandboxes/suite/README.md";
  console.error(
    `E2B's tests are not there. Name their directory, packages/js-sdk, with --suite; ${readme} says where to get them.`,
  );
  process.exit(2);
}

await setup({ quiet: true });
const folder = mkdtempSync(join(tmpdir(), "hibernaut-suite-"));
const sdk = join(folder, "sdk");
/** @type {Awaited<ReturnType<typeof openRig>> | undefined} */
let rig;
try {
  cpSync(source, sdk, { recursive: true, filter: (path) => !path.endsWith("/node_modules") });
  const { version, dependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(source, "package.json"), "utf8"),
  );
  const own = { name: "suite", private: true, type: "commonjs", version, dependencies, optionalDependencies };
  writeFileSync(join(sdk, "package.json"), JSON.stringify(own));
  run("npm", ["install", "--no-audit", "--no-fund", "--silent", ...TOOLS], {}, sdk);
  rig = await openRig(join(folder, "rig"), (line) => console.error(line));
  console.log(`E2B's tests of version ${version}, with a platform at ${rig.environment.E2B_DOMAIN}`);
  const withPlatform = suite("live", TEST_MS, TEMPLATE_TEST_MS, rig);
  await rig.stop();
  console.log("The same without a platform");
  const without = suite("control", CONTROL_TEST_MS, CONTROL_TEST_MS, rig);
  const exceptions = JSON.parse(readFileSync(join(ROOT, "packages/sandboxes/suite/exceptions.json"), "utf8"));
  const verdict = judge(withPlatform, without, exceptions);
  const about = {
    ...{ title: "What E2B's own tests say", sdk: "JavaScript", version },
    command: "npm run conformance:e2b",
    date: new Date().toISOString().slice(0, 10),
  };
  const text = page(verdict, about);
  console.log(text);
  for (const { name, why } of verdict.failed) console.log(`FAIL ${name}: ${why}`);
  if (options.only === undefined)
    for (const test of verdict.needless) console.log(`note: ${test} is excepted, and did not fail`);
  if (options.record) writeFileSync(join(ROOT, "docs/sandboxes-results.md"), text);
  process.exitCode = verdict.isGood ? 0 : 1;
} finally {
  await rig?.stop();
  rmSync(folder, { recursive: true, force: true });
}

/**
 * @param {string} name @param {number} testMs @param {number} templateMs
 * @param {{ names: string, environment: Record<string, string> }} rig
 */
function suite(name, testMs, templateMs, { names, environment }) {
  const report = join(folder, `${name}.json`);
  const config = join(sdk, `vitest.${name}.config.mjs`);
  const project = (/** @type {string} */ title, /** @type {object} */ more) => ({
    test: {
      name: title,
      environment: "node",
      setupFiles: [names, "tests/globalFetchFallback.setup.ts"],
      isolate: true,
      ...more,
    },
  });
  const projects = [
    project("sandboxes", {
      include: ["tests/**/*.test.ts"],
      exclude: [...LEFT_OUT, "tests/template/**"],
      testTimeout: testMs,
      hookTimeout: testMs,
    }),
    project("template", { include: ["tests/template/**/*.test.ts"], testTimeout: templateMs, hookTimeout: templateMs }),
  ];
  writeFileSync(config, `export default ${JSON.stringify({ test: { projects, fileParallelism: false } })};\n`);
  const words = options.only === undefined ? [] : [options.only];
  const args = [
    "vitest",
    "run",
    "--config",
    config,
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
    ...words,
  ];
  run("npx", args, environment, sdk, true);
  return readReport(readFileSync(report, "utf8"), sdk);
}

/**
 * @param {string} command @param {string[]} args @param {Record<string, string>} more @param {string} cwd
 * @param {boolean} [mayFail] Its report says what did.
 */
function run(command, args, more, cwd, mayFail = false) {
  const { status, error } = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...more },
    stdio: ["ignore", "inherit", "inherit"],
    timeout: RUN_MS,
  });
  if (error !== undefined) throw error;
  if (status !== 0 && !mayFail) throw new Error(`${command} ${args[0]} ended with code ${status}`);
}
