/**
 * What `.ci/run` runs: the README's commands in the README's order, in one home, and then what is longer, next to a
 * platform of `npm run up` that runs on. The last line is the sum. Plain JavaScript for Node 18 and later.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
/** How long a platform may take until it has shown its tour: it takes half a minute, and waits for nothing. */
const TOUR_MS = 5 * 60_000;
/** How long it may take to end: it suspends nothing. */
const END_MS = 60_000;

const sum = { passed: 0, failed: 0 };
/** The lines that tell of a failure, to be repeated where someone looks first: at the end. @type {string[]} */
const failures = [];

/** @param {boolean} ok @param {string} what */
function count(ok, what) {
  sum[ok ? "passed" : "failed"] += 1;
  console.log(`${ok ? "ok  " : "FAIL"} ${what}\n`);
  if (!ok) failures.push(`FAIL ${what}`);
}

/** Starts an npm script in a process group of its own. @param {string[]} words */
function start(...words) {
  return spawn("npm", words, { cwd: ROOT, detached: true, stdio: ["ignore", "pipe", "inherit"] });
}

/** Runs a suite, shows what it prints, and adds its last line to the sum. @param {string[]} words */
async function suite(...words) {
  console.log(`$ npm ${words.join(" ")}`);
  const child = start(...words);
  let last = "";
  for await (const line of createInterface({ input: child.stdout })) {
    console.log(line);
    if (line !== "") last = line;
    if (line.startsWith("FAIL ")) failures.push(line);
  }
  const code = child.exitCode ?? (await once(child, "close"))[0];
  const [, passed = 0, failed = 0] = /^(\d+) passed, (\d+) failed$/.exec(last) ?? [];
  sum.passed += Number(passed);
  sum.failed += Number(failed);
  if (code !== 0 && Number(failed) === 0) count(false, `npm ${words.join(" ")} ended with ${code}`);
}

/** The tour, to its end. */
async function tour() {
  const words = ["run", "--silent", "up", "--", "--exit", "--json"];
  console.log(`$ npm ${words.join(" ")}`);
  const child = start(...words);
  child.stdout.pipe(process.stdout, { end: false });
  const [code] = await once(child, "close");
  count(code === 0, "npm run up: the tour");
}

/**
 * Does something next to a platform as the README's first command leaves it: running, with the demo machine. It prints where
 * it answers to standard output once the tour is over.
 *
 * @param {() => Promise<void>} work
 */
async function withPlatform(work) {
  console.log("$ npm run up   (left running)");
  const platform = start("run", "--silent", "up", "--", "--json");
  const ended = once(platform, "close");
  const shown = once(platform.stdout, "data").then(() => true);
  const isUp = await Promise.race([shown, ended.then(() => false), delay(TOUR_MS, false, { ref: false })]);
  count(isUp, "npm run up: the platform runs on");
  await work();
  count(isUp && platform.exitCode === null, "npm run up: the platform is still there");
  signal(platform.pid, "SIGINT");
  if (await Promise.race([ended.then(() => false), delay(END_MS, true, { ref: false })])) {
    count(false, "npm run up: ends at Ctrl-C");
    signal(platform.pid, "SIGKILL");
  }
}

/** To the whole group, as a terminal does. @param {number | undefined} pid @param {NodeJS.Signals} name */
function signal(pid, name) {
  try {
    if (pid !== undefined) process.kill(-pid, name);
  } catch {
    // ended
  }
}

await tour();
await suite("test");
await withPlatform(() => suite("run", "test:all"));
process.exitCode = sum.failed > 0 ? 1 : 0;
for (const failure of failures) console.log(failure);
console.log(`${sum.passed} passed, ${sum.failed} failed`);
