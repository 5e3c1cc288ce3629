#!/usr/bin/env node
/**
 * `npm run bench:proxy:wake` measures how long a request to a sleeping machine waits: from the request at the proxy to
 * the first byte of the answer. A script that wakes the same guest with QEMU and nothing else (`bare.mjs`) is the
 * reference. It has the same image, memory, accelerator and network, and the QEMU arguments of a boot. The two sides
 * take turns, sample by sample. Prints medians, spread and where the time goes, records every sample in
 * `bench/results/proxy-wake.json`, and exits with code 1 if the goal is missed.
 *
 * Each wake resumes a snapshot that was just taken of the guest that the last one woke, so the memory file stays the
 * same and nothing is copied. Each request is the first on a new connection.
 */
import { loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createProgress } from "../../scripts/lib/progress.mjs";
import { setup } from "../../scripts/setup.mjs";
import { environment, writeResult } from "../lib/record.mjs";
import { round } from "../lib/stats.mjs";
import { openBare } from "./bare.mjs";
import { cachedBytes, intoCache, outOfCache } from "./wake-files.mjs";
import { bareOptions, openMachine, openPlatform } from "./wake-platform.mjs";
import { quietMoment } from "./wake-quiet.mjs";
import { GOAL, goalMet, partsOf, print, summarize } from "./wake-report.mjs";

const USAGE = `npm run bench:proxy:wake -- [options]

  --quick       three resumes and one cold start for a first impression; records nothing
  --resumes N   resumes of each kind and side (default: 40)
  --cold N      cold starts of each side (default: 5)
  --json        print the record as JSON instead of tables
`;
/** Rounds before the first one that counts: V8 needs several until it has compiled what runs often. */
const WARM_UP = 3;
/** How long a sample waits for the host to become quiet. */
const PATIENCE_MS = 8_000;
/** By then, an app that was just woken has finished what it had to do. */
const SETTLE_MS = 300;

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    resumes: { type: "string" },
    cold: { type: "string" },
    json: { type: "boolean", default: false },
    help: { type: "boolean" },
  },
});
if (options.help) {
  process.stdout.write(USAGE);
  process.exit();
}
const resumes = Number(options.resumes ?? (options.quick ? 3 : 40));
const colds = Number(options.cold ?? (options.quick ? 1 : 5));
if (!(resumes >= 0 && colds >= 0 && resumes + colds > 0)) {
  process.stderr.write(USAGE);
  process.exit(2);
}

/**
 * @typedef {import("./wake-report.mjs").Kind} Kind
 * @typedef {import("./wake-report.mjs").Side} Side
 * @typedef {{ answer: import("./wake-request.mjs").Answer, marks: Record<string, number> }} Wake
 *
 * @typedef {object} Guest One of the two sides.
 * @property {() => Promise<void>} sleep
 * @property {() => Promise<void>} stop
 * @property {() => string[]} files
 * @property {() => Promise<Wake>} wake
 * @property {() => Promise<Wake>} boot
 */

/** @type {(() => unknown)[]} What to clean up, the last first. */
const leftovers = [];
async function cleanUp() {
  for (let work = leftovers.pop(); work !== undefined; work = leftovers.pop()) {
    try {
      await work();
    } catch (error) {
      process.stderr.write(`cleaning up: ${String(error)}\n`);
    }
  }
}

const progress = createProgress(3);
/** Starts both sides and suspends them. */
async function open() {
  const platform = await openPlatform();
  leftovers.push(platform.close);
  const { accelerator, hypervisor_version: qemu } = await platform.call("GET", "/health");
  const machine = await openMachine(platform);
  await machine.sleep();
  const bare = openBare(await bareOptions(platform));
  process.on("exit", bare.kill);
  leftovers.push(() => bare.end());
  await bare.boot();
  await bare.sleep();
  /** @type {Record<Side, Guest>} */
  const guests = {
    platform: { ...machine, boot: machine.wake },
    bare: {
      sleep: () => bare.sleep(),
      stop: () => bare.end(),
      files: () => bare.files,
      wake: bare.wake,
      boot: bare.boot,
    },
  };
  return { accelerator, qemu, guests };
}

/** @type {import("./wake-report.mjs").Sample[]} */
const samples = [];
/** @type {Partial<Record<Side, { nonce: string, count: number }>>} What each guest answered last. */
const said = {};

/**
 * Wakes one side, measures it, and suspends it again.
 *
 * @param {Side} side
 * @param {Guest} guest
 * @param {{ round: number, kind: Kind, first: boolean }} about
 */
async function measure(side, guest, { round: number, kind, first }) {
  const cold = kind === "cold";
  if (cold && side === "platform") await guest.stop();
  const files = cold ? [] : guest.files();
  if (kind === "resume_cached") intoCache(files);
  if (kind === "resume_dropped") outOfCache(files);
  const busy = round(await quietMoment(PATIENCE_MS));
  const cached = cold ? 0 : cachedBytes(files);
  const { answer, marks } = cold ? await guest.boot() : await guest.wake();
  verify(side, cold, answer);
  if (number >= 0) {
    const ms = round(answer.firstByte - (marks.began ?? Number.NaN));
    const parts = partsOf(kind, marks);
    samples.push({ round: number, kind, side, first, ms, busy, cached_bytes: cached, wake: answer.wake, parts });
  }
  await delay(SETTLE_MS);
  await guest.sleep();
}

/**
 * A resumed guest continues to count where it left off; a cold start begins at 1. Throws otherwise.
 *
 * @param {Side} side
 * @param {boolean} cold
 * @param {import("./wake-request.mjs").Answer} answer
 */
function verify(side, cold, { body, wake }) {
  const before = said[side];
  said[side] = body;
  const expected = cold
    ? body.count === 1
    : before === undefined || (body.nonce === before.nonce && body.count === before.count + 1);
  const kind = side === "bare" || wake.startsWith(cold ? "cold" : "resume");
  if (!expected || !kind)
    throw new Error(`Not a ${cold ? "cold start" : "resume"} (${side}): ${wake} ${JSON.stringify([before, body])}`);
}

/**
 * Measures both sides. The one that goes first alternates between rounds.
 *
 * @param {Record<Side, Guest>} guests
 * @param {number} number
 * @param {Kind} kind
 */
async function pair(guests, number, kind) {
  const sides = /** @type {Side[]} */ (number % 2 === 0 ? ["platform", "bare"] : ["bare", "platform"]);
  for (const side of sides) await measure(side, guests[side], { round: number, kind, first: side === sides[0] });
}

async function main() {
  const { accelerator, qemu, guests } = await progress.step("a machine, and a bare guest like it", open);
  const began = environment();
  await progress.step(`${resumes} resumes of each kind and side`, async (step) => {
    for (let number = -WARM_UP; number < resumes; number += 1) {
      step.detail(`round ${number + 1}, ${samples.at(-1)?.ms ?? "-"} ms`);
      if (resumes > 0)
        for (const kind of /** @type {const} */ (["resume_cached", "resume_dropped"])) await pair(guests, number, kind);
    }
  });
  await progress.step(`${colds} cold starts of each side`, async (step) => {
    for (let number = 0; number < colds; number += 1) {
      step.detail(`round ${number + 1}`);
      await pair(guests, number, "cold");
    }
  });
  return { ...began, load_after: loadavg(), accelerator, qemu };
}

const interrupted = new Promise((_resolve, reject) => {
  for (const [signal, code] of /** @type {const} */ ([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ]))
    process.once(signal, () => reject(Object.assign(new Error("interrupted"), { code })));
});
interrupted.catch(() => {});

try {
  await Promise.race([setup({ quiet: true }), interrupted]);
  const about = /** @type {Awaited<ReturnType<typeof main>>} */ (await Promise.race([main(), interrupted]));
  const results = summarize(samples);
  const record = { ...about, goal: GOAL, results, samples };
  const met = goalMet(results);
  if (options.json) console.log(JSON.stringify(record));
  else {
    print(results);
    console.log(`\ngoal: every kind of wake within ${GOAL.ratio} times the bare script: ${met ? "met" : "MISSED"}`);
  }
  if (!options.quick) writeResult("proxy-wake", record);
  process.exitCode = met ? 0 : 1;
} catch (error) {
  const { code } = /** @type {{ code?: unknown }} */ (error);
  process.exitCode = typeof code === "number" ? code : 1;
  if (typeof code !== "number") throw error;
} finally {
  await cleanUp();
}
// Work that was interrupted would keep the process alive.
process.exit();
