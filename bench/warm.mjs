#!/usr/bin/env node
/**
 * `npm run bench:warm` measures what warm sleep is worth: from a request at the proxy to the first byte of the answer,
 * for a machine that runs (hot), one whose paused VMM is kept (warm), and one that resumes from its snapshot. The three
 * take turns in every round, on the same platform, with the same image and 256 MB. Also: how long a durable suspend takes,
 * how much memory a kept VMM needs, and how long the first request after a prewarmed update waits, compared with the
 * second one after an update without: an app that has just started answers more slowly than one that has run for long.
 * Prints medians and spread, records every sample in `bench/results/warm.json`, and exits with code 1 if a goal is missed.
 *
 * Requests are the first on a new connection.
 */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startOwnPlatform } from "../scripts/lib/own-platform.mjs";
import { createProgress } from "../scripts/lib/progress.mjs";
import { setup } from "../scripts/setup.mjs";
import { createCounter, PORT } from "./lib/counter.mjs";
import { goalsMet } from "./lib/goals.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { percentile, round, summary } from "./lib/stats.mjs";
import { quietMoment } from "./proxy/wake-quiet.mjs";
import { ask } from "./proxy/wake-request.mjs";

/** Rounds before the first one that counts: V8 and the emulator need several until they have compiled what runs often. */
const WARM_UP = 5;
const HOT = 5;
/** Rounds between two prewarmed updates, each of which boots the guest. */
const PREWARM_EVERY = 4;
/** By then, an app that was just woken has finished what it had to do. */
const SETTLE_MS = 300;
const PATIENCE_MS = 4_000;

/** In turns, because what comes second finds the caches of the first. */
const KINDS = /** @type {const} */ (["warm", "resume"]);

const GOALS = {
  warm_to_hot_p50: 3,
  warm_p99_to_hot_p50: 10,
  suspend_p50_ms: 60,
  prewarmed_to_second_p50: 1.2,
};
const LEAST = { resume_to_warm_p50: 8 };

const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "60" }, quick: { type: "boolean", default: false } },
});
const rounds = options.quick ? 5 : Number(options.rounds);

await setup({ quiet: true });
const about = environment();
const { call, apiUrl, token, port: proxyPort, close } = await startOwnPlatform();

/**
 * Creates an app with one machine.
 *
 * @param {string} app
 * @param {number} keepWarm Seconds.
 */
async function create(app, keepWarm) {
  await call("POST", "/apps", { app_name: app });
  const { path, config, to } = await createCounter(call, app, { service: { keep_warm: keepWarm } });
  return {
    /** Changes the sleeping machine. With `prewarm`, the platform starts it, checks it, and lets it sleep again. */
    async update(/** @type {number} */ number, /** @type {boolean} */ prewarm) {
      // Without a check, nothing of the app would have run before its first request.
      const checks = { up: { type: "http", port: PORT, path: "/", interval: "1h" } };
      const changed = { ...config, checks, env: { ROUND: `${number} ${prewarm}` } };
      await call("POST", path, { config: changed, prewarm });
      await call("GET", `${path}/wait?state=prewarmed&timeout=120`);
      await call("GET", `${path}/wait?state=suspended`);
    },
    request: () => ask({ host: "127.0.0.1", port: proxyPort, name: `${app}.localhost` }),
    async suspend() {
      const began = performance.now();
      await to("suspend", "suspended");
      return performance.now() - began;
    },
  };
}

/** How much memory the platform counts for the VMM that it keeps, in MB. */
async function keptMb() {
  const text = await (await fetch(`${apiUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();
  return round(Number(/^hibernaut_warm_bytes (\d+)/m.exec(text)?.[1] ?? Number.NaN) / 1024 / 1024, 1);
}

/** @type {Record<"hot" | "warm" | "resume" | "second" | "prewarmed" | "suspend" | "kept_mb", number[]>} */
const samples = { hot: [], warm: [], resume: [], second: [], prewarmed: [], suspend: [], kept_mb: [] };
const progress = createProgress(1);
try {
  const [warm, resumed] = [await create("warm", 3600), await create("resumed", 0)];
  const prewarmed = await create("prewarmed", 0);
  await prewarmed.suspend();
  await progress.step(`${rounds} rounds`, async (step) => {
    for (let number = -WARM_UP; number < rounds; number += 1) {
      const counts = number >= 0;
      for (let i = 0; i < HOT; i += 1) await measure("hot", "running", warm, counts);
      const suspended = await warm.suspend();
      await resumed.suspend();
      if (counts) samples.suspend.push(round(suspended));
      if (counts) samples.kept_mb.push(await keptMb());
      for (const kind of number % 2 === 0 ? KINDS : KINDS.toReversed()) {
        await quietMoment(PATIENCE_MS);
        await measure(kind, kind, kind === "warm" ? warm : resumed, counts);
        await delay(SETTLE_MS);
      }
      if (number % PREWARM_EVERY === 0) {
        for (const kind of /** @type {const} */ (["second", "prewarmed"])) {
          await prewarmed.update(number, kind === "prewarmed");
          if (kind === "second") {
            await prewarmed.request();
            await prewarmed.suspend();
          }
          await quietMoment(PATIENCE_MS);
          await measure(kind, "resume", prewarmed, counts);
          await delay(SETTLE_MS);
          await prewarmed.suspend();
        }
      }
      step.detail(`${number + WARM_UP + 1} of ${rounds + WARM_UP}`);
    }
  });
} finally {
  for (const app of ["warm", "resumed", "prewarmed"]) await call("DELETE", `/apps/${app}?force=true`).catch(() => {});
  await close();
}

/**
 * One request. Throws when the machine was not woken the way it should have been.
 *
 * @param {"hot" | "warm" | "resume" | "second" | "prewarmed"} kind
 * @param {string} expected
 * @param {Awaited<ReturnType<typeof create>>} machine
 * @param {boolean} counts
 */
async function measure(kind, expected, { request }, counts) {
  const { began, firstByte, wake } = await request();
  if (!wake.startsWith(`${expected};`)) throw new Error(`A ${kind} request was answered with "${wake}".`);
  if (counts) samples[kind].push(round(firstByte - began));
}

const [hot, warm, resume] = [summary(samples.hot), summary(samples.warm), summary(samples.resume)];
const figures = {
  warm_to_hot_p50: round(warm.median / hot.median),
  warm_p99_to_hot_p50: round(percentile(samples.warm, 0.99) / hot.median),
  resume_to_warm_p50: round(resume.median / warm.median),
  suspend_p50_ms: summary(samples.suspend).median,
  prewarmed_to_second_p50: round(summary(samples.prewarmed).median / summary(samples.second).median),
};
for (const name of /** @type {const} */ (["hot", "warm", "resume", "second", "prewarmed", "suspend"])) {
  const { n, min, median, p90, max } = summary(samples[name]);
  const line = [n, min, median, p90, percentile(samples[name], 0.99), max].map((value) => String(value).padStart(8));
  console.log(`${name.padEnd(9)} n, min, p50, p90, p99, max (ms): ${line.join("")}`);
}
console.log(`a kept VMM: ${summary(samples.kept_mb).median} MB (max ${summary(samples.kept_mb).max})`);
const met = goalsMet(figures, GOALS, LEAST);
if (!options.quick) writeResult("warm", { ...about, figures, samples });
process.exitCode = met ? 0 : 1;
