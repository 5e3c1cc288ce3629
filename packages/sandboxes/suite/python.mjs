/**
 * Runs the tests of E2B's Python SDK, unchanged, against a platform of its own, and once more without one: see README.md.
 * Without the sources it says so, and has nothing to do.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "../../../scripts/lib/node.mjs";
import { setup } from "../../../scripts/setup.mjs";
import { openRig } from "./rig.mjs";
import { judge, page, readJunit } from "./rules.mjs";

/** As for the tests in JavaScript: a test may make several sandboxes, each of which takes seconds under emulation. */
const TEST_S = 120;
/** Without a platform, nothing answers: what waits for an answer has failed by then. */
const CONTROL_TEST_S = 10;
/** Three hours: most tests are there twice, for either kind of client. */
const RUN_MS = 3 * 3_600_000;
/** Those that need nothing but the SDK, and volumes, which are tested against a mock of theirs. */
const LEFT_OUT = ["tests/e2b_connect", "tests/bugs", "tests/sync/volume_sync", "tests/async/volume_async"];

/** Lets every name below the domain mean this host, in the process of the tests and nowhere else. */
const names = (/** @type {string} */ domain) => `
import socket
_real = socket.getaddrinfo
def _ours(host, *args, **kwargs):
    name = host.decode() if isinstance(host, bytes) else host
    if name == "${domain}" or str(name).endswith(".${domain}"):
        host = "127.0.0.1"
    return _real(host, *args, **kwargs)
socket.getaddrinfo = _ours
`;

const { values: options } = parseArgs({
  options: {
    suite: { type: "string" },
    path: { type: "string", multiple: true, default: [] },
    python: { type: "string", default: "python3" },
    only: { type: "string" },
    record: { type: "boolean", default: false },
  },
});
const source = resolve(options.suite ?? "");
const missing = whyNot();
if (missing !== undefined) {
  console.log(`skipped: ${missing} packages/sandboxes/suite/README.md says where to get what is needed.`);
  process.exit(0);
}

await setup({ quiet: true });
const folder = mkdtempSync(join(tmpdir(), "hibernaut-python-"));
/** @type {Awaited<ReturnType<typeof openRig>> | undefined} */
let rig;
try {
  const sdk = join(folder, "sdk");
  cpSync(source, sdk, { recursive: true });
  const version = /^version = "([^"]+)"/m.exec(readFileSync(join(source, "pyproject.toml"), "utf8"))?.[1] ?? "unknown";
  rig = await openRig(join(folder, "rig"), (line) => console.error(line));
  const domain = rig.environment.E2B_DOMAIN.split(":")[0] ?? "";
  const packages = ownPackages(sdk, version, domain);
  console.log(`E2B's tests of version ${version}, with a platform at ${rig.environment.E2B_DOMAIN}`);
  const withPlatform = suite("live", TEST_S, sdk, packages, rig.environment);
  await rig.stop();
  console.log("The same without a platform");
  const without = suite("control", CONTROL_TEST_S, sdk, packages, rig.environment);
  const exceptions = JSON.parse(readFileSync(join(ROOT, "packages/sandboxes/suite/exceptions-python.json"), "utf8"));
  const verdict = judge(withPlatform, without, exceptions);
  const about = {
    ...{ title: "What the tests of E2B's Python SDK say", sdk: "Python", version },
    command: `npm run conformance:e2b:python${options.only === undefined ? "" : ` -- --only "${options.only}"`}`,
    date: new Date().toISOString().slice(0, 10),
  };
  const text = page(verdict, about);
  console.log(text);
  for (const { name, why } of verdict.failed) console.log(`FAIL ${name}: ${why}`);
  if (options.only === undefined)
    for (const test of verdict.needless) console.log(`note: ${test} is excepted, and did not fail`);
  if (options.record) writeFileSync(join(ROOT, "docs/sandboxes-results-python.md"), text);
  process.exitCode = verdict.isGood ? 0 : 1;
} finally {
  await rig?.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Why nothing can be run, as a sentence. */
function whyNot() {
  if (options.suite === undefined || !existsSync(join(source, "tests/conftest.py")))
    return "E2B's tests are not there. Name their directory, packages/python-sdk, with --suite.";
  const needed =
    "import pytest, pytest_asyncio, pytest_timeout, httpx, httpcore, attr, dateutil, wcmatch, rich, dockerfile_parse";
  const { status, error, stderr } = spawnSync(options.python, ["-c", needed], {
    env: { ...process.env, PYTHONPATH: options.path.join(delimiter) },
    encoding: "utf8",
  });
  if (error !== undefined) return `There is no ${options.python}.`;
  return status === 0 ? undefined : `Python lacks a package: ${stderr.trim().split("\n").at(-1)}.`;
}

/**
 * What the SDK expects of a package that is installed, and the names of the rig. Returns the path of packages.
 *
 * @param {string} sdk @param {string} version @param {string} domain
 */
function ownPackages(sdk, version, domain) {
  const own = join(folder, "packages");
  mkdirSync(join(own, `e2b-${version}.dist-info`), { recursive: true });
  writeFileSync(
    join(own, `e2b-${version}.dist-info/METADATA`),
    `Metadata-Version: 2.1\nName: e2b\nVersion: ${version}\n`,
  );
  writeFileSync(join(own, "sitecustomize.py"), names(domain));
  return [own, sdk, ...options.path.map((path) => resolve(path))].join(delimiter);
}

/**
 * @param {string} name @param {number} seconds For one test. @param {string} sdk @param {string} packages
 * @param {Record<string, string>} environment
 */
function suite(name, seconds, sdk, packages, environment) {
  const report = join(folder, `${name}.xml`);
  const { NODE_EXTRA_CA_CERTS: authority = "", ...rest } = environment;
  const words = options.only === undefined ? [] : ["-k", options.only];
  const args = [
    "-m",
    "pytest",
    "-q",
    "--tb=no",
    "-o",
    `timeout=${seconds}`,
    "-o",
    "junit_family=xunit1",
    `--junitxml=${report}`,
  ];
  const { error } = spawnSync(
    options.python,
    [...args, ...LEFT_OUT.map((path) => `--ignore=${path}`), ...words, "tests"],
    {
      cwd: sdk,
      env: { ...process.env, ...rest, PYTHONPATH: packages, SSL_CERT_FILE: authority, PYTHONDONTWRITEBYTECODE: "1" },
      stdio: ["ignore", "inherit", "inherit"],
      timeout: RUN_MS,
    },
  );
  if (error !== undefined) throw error;
  return readJunit(readFileSync(report, "utf8"));
}
