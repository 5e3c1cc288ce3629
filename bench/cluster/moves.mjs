#!/usr/bin/env node
/**
 * `npm run bench:moves` measures how long a machine of 256 MB moves, and how long a client that keeps asking waits for it.
 * Two platforms on this machine form a cluster. In every round, the counter's machine wakes once from its snapshot in the
 * ordinary way, and then moves to the other host while it runs, under requests to host a. The outage is the longest time
 * without an answer. Prints medians and spread, with the steps as the hosts logged them, records every sample in
 * `bench/results/moves.json`, and exits with code 1 if a goal is missed.
 */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { setup } from "../../scripts/setup.mjs";
import { commandLine, environment, writeResult } from "../lib/record.mjs";
import { round, summary } from "../lib/stats.mjs";
import { quietMoment } from "../proxy/wake-quiet.mjs";
import { ask, now } from "../proxy/wake-request.mjs";
import { startCluster } from "./hosts.mjs";
import { lastLine } from "./last-line.mjs";

const ROOT = join(import.meta.dirname, "../..");
const HOST = "127.0.0.1";
/** The name that the client asks for. */
const APP = "bench";
const MEMORY_MB = 256;
/** Rounds before the first one that counts: a host that has the image reads it for the first time then. */
const WARM_UP = 2;
/** By then, an app that was just woken has finished what it had to do. */
const SETTLE_MS = 500;
const PATIENCE_MS = 4_000;
/** Between two requests. */
const ASK_EVERY_MS = 10;
/** Medians, in milliseconds. The outage is what a move adds to an ordinary wake. */
const GOALS = { move: 3_000, outage: 1_500 };

const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "20" }, quick: { type: "boolean", default: false } },
});
const rounds = options.quick ? 3 : Number(options.rounds);

await setup({ quiet: true });
const about = environment();
/** What the hosts logged about the last move. @type {Record<string, number>} */
let steps = {};
const { hosts, close } = await startCluster({
  // On a busy host the app starts slowly, which is not what is measured.
  env: { HIBERNAUT_LOG_LEVEL: "info", HIBERNAUT_LOG_FORMAT: "json", HIBERNAUT_READY_TIMEOUT: "2m" },
  say(line) {
    const { level, msg, ms, machine } = JSON.parse(line);
    if (machine !== undefined && ms !== undefined) Object.assign(steps, prefixed(msg, ms));
    else if (level >= 40) console.error(line);
  },
});
const [a] = hosts;
/** @type {Record<string, number[]>} */
const samples = {};
try {
  await a.call("POST", "/apps", { app_name: APP });
  const services = [{ internal_port: 8080, autostop: "off" }];
  const config = { image: `oci:${join(ROOT, ".build/counter")}:latest`, guest: { memory_mb: MEMORY_MB }, services };
  const { machine_id: id } = await a.call("POST", `/apps/${APP}/machines`, { config, host: a.name });
  const path = `/apps/${APP}/machines/${id}`;
  const request = () => ask({ host: HOST, port: a.port, name: `${APP}.localhost` });
  await a.call("GET", `${path}/wait?timeout=120`);
  await request();
  for (let number = -WARM_UP; number < rounds; number += 1) {
    const to = /** @type {import("./hosts.mjs").BenchHost} */ (hosts[(number + WARM_UP + 1) % 2]);
    const add = (/** @type {string} */ name, /** @type {number} */ ms) => {
      if (number >= 0) (samples[name] ??= []).push(round(ms));
    };
    await a.call("POST", `${path}/suspend`);
    await a.call("GET", `${path}/wait?state=suspended`);
    await quietMoment(PATIENCE_MS);
    const woken = await request();
    if (!woken.wake.startsWith("resume;")) throw new Error(`A request was answered with "${woken.wake}".`);
    add("wake_ms", woken.firstByte - woken.began);
    await delay(SETTLE_MS);
    await quietMoment(PATIENCE_MS);

    const asking = keepAsking(request, woken.body.nonce);
    await delay(SETTLE_MS);
    steps = {};
    const began = now();
    await lastLine(a, `${path}/move`, { host: to.name });
    add("move_ms", now() - began);
    await delay(SETTLE_MS);
    add("outage_ms", await asking.end());
    for (const [step, ms] of Object.entries(steps)) add(step, ms);
  }
} finally {
  await a.call("DELETE", `/apps/${APP}?force=true`).catch(() => {});
  await close();
}

/**
 * Sends one request after the other. `end` resolves with the longest time between two answers.
 *
 * @param {() => ReturnType<typeof ask>} request
 * @param {string} nonce Of the process that has to answer all of them.
 */
function keepAsking(request, nonce) {
  const over = new AbortController();
  const asked = (async () => {
    let longest = 0;
    for (let last = now(); !over.signal.aborted; await delay(ASK_EVERY_MS)) {
      const { firstByte, body } = await request();
      if (body.nonce !== nonce) throw new Error("The machine has lost its memory.");
      longest = Math.max(longest, firstByte - last);
      last = firstByte;
    }
    return longest;
  })();
  asked.catch(() => {}); // the caller hears of it at the end
  return {
    end() {
      over.abort();
      return asked;
    },
  };
}

/** @param {string} message @param {Record<string, number>} ms */
function prefixed(message, ms) {
  const host = message.includes("has come") ? "to" : "from";
  return Object.fromEntries(Object.entries(ms).map(([step, value]) => [`${host}: ${step}_ms`, value]));
}

const results = Object.fromEntries(Object.entries(samples).map(([name, values]) => [name, summary(values)]));
console.table(results);
const medianOf = (/** @type {string} */ name) => summary(samples[name] ?? []).median;
const figures = { move: medianOf("move_ms"), outage: round(medianOf("outage_ms") - medianOf("wake_ms")) };
const met = { move: figures.move < GOALS.move, outage: figures.outage < GOALS.outage };
console.log(`${met.move ? "ok  " : "MISS"} a move: ${figures.move} ms (goal: < ${GOALS.move})`);
console.log(`${met.outage ? "ok  " : "MISS"} its outage beyond a wake: ${figures.outage} ms (goal: < ${GOALS.outage})`);
if (!options.quick) writeResult("moves", { command: commandLine("bench:moves"), ...about, figures, results, samples });
process.exitCode = met.move && met.outage ? 0 : 1;
