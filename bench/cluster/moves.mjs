#!/usr/bin/env node
/**
 * `npm run bench:moves` measures how long a machine of 256 MB moves, and how long a client that keeps asking waits for it.
 * Two platforms on this machine form a cluster. In every round, the counter's machine wakes once from its snapshot in the
 * ordinary way, and then moves to the other host while it runs, under requests to host a. The outage is the longest time
 * without an answer. Prints medians and spread, with the steps as the hosts logged them, records every sample in
 * `bench/results/moves.json`, and exits with code 1 if a goal is missed.
 */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { setup } from "../../scripts/setup.mjs";
import { createCounter } from "../lib/counter.mjs";
import { goalsMet } from "../lib/goals.mjs";
import { environment, writeResult } from "../lib/record.mjs";
import { round, summaries } from "../lib/stats.mjs";
import { quietMoment } from "../proxy/wake-quiet.mjs";
import { ask, now } from "../proxy/wake-request.mjs";
import { startCluster } from "./hosts.mjs";

const HOST = "127.0.0.1";
const APP = "bench";
/** Rounds before the first one that counts: a host that has the image reads it for the first time then. */
const WARM_UP = 2;
/** By then, an app that was just woken has finished what it had to do. */
const SETTLE_MS = 500;
const PATIENCE_MS = 4_000;
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
  const machine = await createCounter(a.call, APP, { host: a.name });
  const request = () => ask({ host: HOST, port: a.port, name: `${APP}.localhost` });
  await request();
  for (let number = -WARM_UP; number < rounds; number += 1) {
    const to = /** @type {import("./hosts.mjs").BenchHost} */ (hosts[(number + WARM_UP + 1) % 2]);
    const add = (/** @type {string} */ name, /** @type {number} */ ms) => {
      if (number >= 0) (samples[name] ??= []).push(round(ms));
    };
    await machine.to("suspend", "suspended");
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
    await move(`${machine.path}/move`, to.name);
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

/**
 * Moves the machine. Host a answers with the progress, line by line, and the last line says how it ended.
 *
 * @param {string} path
 * @param {string} host
 */
async function move(path, host) {
  const response = await fetch(`${a.apiUrl}/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${a.token}`, "content-type": "application/json" },
    body: JSON.stringify({ host }),
  });
  const answer = JSON.parse((await response.text()).trim().split("\n").at(-1) ?? "{}");
  if (answer.error !== undefined) throw new Error(`${answer.error}: ${answer.message}`);
}

/** @param {string} message @param {Record<string, number>} ms */
function prefixed(message, ms) {
  const host = message.includes("has come") ? "to" : "from";
  return Object.fromEntries(Object.entries(ms).map(([step, value]) => [`${host}: ${step}_ms`, value]));
}

const results = summaries(samples);
console.table(results);
const medianOf = (/** @type {string} */ name) => results[name]?.median ?? Number.NaN;
const figures = { move: medianOf("move_ms"), outage: round(medianOf("outage_ms") - medianOf("wake_ms")) };
const met = goalsMet(figures, GOALS);
if (!options.quick) writeResult("moves", { ...about, figures, results, samples });
process.exitCode = met ? 0 : 1;
