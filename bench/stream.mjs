#!/usr/bin/env node
/**
 * `npm run bench:stream` measures what open streams of events cost the platform: the CPU time of its process while 50 secrets
 * change per second, with 200 readers and without any, in turns. Every reader has to get every event. Prints medians and
 * spread, records every sample in `bench/results/stream.json`, and exits with code 1 if the goal is missed.
 */
import { get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startOwnPlatform } from "../scripts/lib/own-platform.mjs";
import { createProgress } from "../scripts/lib/progress.mjs";
import { setup } from "../scripts/setup.mjs";
import { goalsMet } from "./lib/goals.mjs";
import { cpuMs } from "./lib/processes.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { round, summaries } from "./lib/stats.mjs";

const READERS = 200;
const PER_SECOND = 50;
const ROUND_S = 10;
/** What a round ends with: the last event has reached everybody long before. */
const SETTLE_MS = 1_000;
const APP = "stream";
/** Percent of one CPU. */
const GOALS = { streams_cpu_percent: 5 };

const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "8" }, quick: { type: "boolean", default: false } },
});
const rounds = Number(options.rounds);

await setup({ quiet: true });
const about = environment();
/** @type {Record<"without_cpu_percent" | "with_cpu_percent" | "streams_cpu_percent" | "delay_ms" | "changes_per_second", number[]>} */
const samples = {
  without_cpu_percent: [],
  with_cpu_percent: [],
  streams_cpu_percent: [],
  delay_ms: [],
  changes_per_second: [],
};
const progress = createProgress(1);
const platform = await startOwnPlatform({
  HIBERNAUT_NETWORK: "user",
  HIBERNAUT_ACCELERATOR: "tcg",
  HIBERNAUT_RATE_CHANGES: "0",
});
try {
  await platform.call("POST", "/apps", { app_name: APP });
  await progress.step("measuring", async (step) => {
    // The first pair warms up the code and does not count.
    for (let number = 0; number <= rounds; number += 1) {
      const without = await changing();
      const { percent, delays } = await reading(READERS, changing);
      if (number > 0) {
        samples.without_cpu_percent.push(round(without));
        samples.with_cpu_percent.push(round(percent));
        samples.streams_cpu_percent.push(round(percent - without));
        samples.delay_ms.push(...delays);
      }
      step.detail(`${number} of ${rounds}`);
    }
  });
} finally {
  await platform.close();
}

/** Changes a secret again and again. Resolves with the platform's CPU time for that, in percent of one CPU. */
async function changing() {
  const [began, cpu] = [performance.now(), cpuMs(platform.pid)];
  for (let count = 0; count < PER_SECOND * ROUND_S; count += 1) {
    const due = began + (count * 1000) / PER_SECOND;
    await delay(Math.max(0, due - performance.now()));
    await platform.call("POST", `/apps/${APP}/secrets`, { secrets: { CHANGED: `${Date.now()}-${count}` } });
  }
  const tookMs = performance.now() - began;
  await delay(SETTLE_MS);
  samples.changes_per_second.push(round((PER_SECOND * ROUND_S * 1000) / tookMs));
  // Of the time that it should take: a host that is too busy for this rate makes the figure no better.
  return (cpuMs(platform.pid) - cpu) / (10 * ROUND_S);
}

/**
 * Does something while readers follow the stream. Throws unless each gets as many events as there are. `delays` says how
 * long after an event it arrived, at one of the readers.
 *
 * @param {number} count
 * @param {() => Promise<number>} work
 */
async function reading(count, work) {
  /** @type {number[]} */
  const delays = [];
  const readers = await Promise.all(
    Array.from({ length: count }, (_, index) => open(index === 0 ? delays : undefined)),
  );
  const percent = await work();
  const wanted = PER_SECOND * ROUND_S;
  for (const { request, got } of readers) {
    request.destroy();
    if (got() !== wanted) throw new Error(`A reader got ${got()} of ${wanted} events.`);
  }
  return { percent, delays };
}

/**
 * @param {number[]} [delays]
 * @returns {Promise<{ request: import("node:http").ClientRequest, got: () => number }>}
 */
function open(delays) {
  return new Promise((resolve, reject) => {
    let events = 0;
    const headers = { authorization: `Bearer ${platform.token}` };
    const request = get(`${platform.apiUrl}/v1/stream?app=${APP}`, { headers, agent: false }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`the stream was answered with ${response.statusCode}`));
      // Its first bytes say where it begins.
      response.once("data", () => resolve({ request, got: () => events }));
      response.on("data", (/** @type {Buffer} */ chunk) => {
        const text = chunk.toString();
        events += text.split("\nevent: ").length - 1;
        if (delays === undefined) return;
        for (const [, at = ""] of text.matchAll(/"at":"([^"]+)"/g)) delays.push(Date.now() - Date.parse(at));
      });
      response.on("error", () => {});
    });
    request.on("error", reject);
  });
}

const results = summaries(samples, 1);
console.table(results);
const met = goalsMet({ streams_cpu_percent: results.streams_cpu_percent?.median ?? Number.NaN }, GOALS);
const setting = { readers: READERS, changes_per_second: PER_SECOND, round_s: ROUND_S };
if (!options.quick) writeResult("stream", { ...about, goals: GOALS, ...setting, results, samples });
process.exitCode = met ? 0 : 1;
