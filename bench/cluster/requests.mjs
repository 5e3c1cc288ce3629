#!/usr/bin/env node
/**
 * `npm run bench:cluster` measures what it costs when a request comes to another host than the one of its machine. Two
 * platforms on this machine form a cluster, with real machines of the counter's image. Requests at host b, which has the
 * machine, and at host a, which forwards them, take turns in every round: first wakes from a snapshot, then bursts at the
 * running machine, then requests to the API about it. Prints medians and spread, records every sample in `bench/results/cluster.json`, and exits with code 1
 * if a goal is missed.
 */
import { cpus } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { setup } from "../../scripts/setup.mjs";
import { createCounter } from "../lib/counter.mjs";
import { goalsMet } from "../lib/goals.mjs";
import { environment, writeResult } from "../lib/record.mjs";
import { round, summaries } from "../lib/stats.mjs";
import { burst } from "../proxy/burst.mjs";
import { quietMoment } from "../proxy/wake-quiet.mjs";
import { ask } from "../proxy/wake-request.mjs";
import { startCluster } from "./hosts.mjs";

const HOST = "127.0.0.1";
const APP = "bench";
/** Rounds before the first one that counts, until V8 and the emulator have compiled what runs often. */
const WARM_UP = 3;
/** The same for requests to the API. */
const WARM_UP_CALLS = 100;
/** By then, an app that was just woken has finished what it had to do. */
const SETTLE_MS = 300;
const PATIENCE_MS = 4_000;
/** In turns, because what comes second finds the caches of the first. */
const WAYS = /** @type {const} */ (["local", "forwarded"]);
/** Medians of forwarded requests by those of local ones, and in milliseconds what forwarding adds to a request to the API. */
const GOALS = { wake: 1.15, api_added_ms: 3 };
const LEAST = { throughput: 0.7 };

const { values: options } = parseArgs({
  options: {
    wakes: { type: "string", default: "30" },
    bursts: { type: "string", default: "7" },
    seconds: { type: "string", default: "4" },
    calls: { type: "string", default: "300" },
    connections: { type: "string", default: "16" },
    quick: { type: "boolean", default: false },
  },
});
const wakes = options.quick ? 3 : Number(options.wakes);
const bursts = options.quick ? 2 : Number(options.bursts);
const calls = options.quick ? 50 : Number(options.calls);

await setup({ quiet: true });
const about = environment();
const { hosts, close } = await startCluster();
const [a, b] = hosts;
/** @type {Record<"wake_ms" | "throughput_rps" | "p50_ms" | "api_ms", Record<"local" | "forwarded", number[]>>} */
const samples = {
  wake_ms: { local: [], forwarded: [] },
  throughput_rps: { local: [], forwarded: [] },
  p50_ms: { local: [], forwarded: [] },
  api_ms: { local: [], forwarded: [] },
};
try {
  await a.call("POST", "/apps", { app_name: APP });
  const service = { concurrency: { soft_limit: 1000 } };
  const machine = await heard(() => createCounter(b.call, APP, { service, host: b.name }));
  const portOf = { local: b.port, forwarded: a.port };
  const request = (/** @type {"local" | "forwarded"} */ way) =>
    ask({ host: HOST, port: portOf[way], name: `${APP}.localhost` });
  await heard(() => request("forwarded"));

  for (let number = -WARM_UP; number < wakes; number += 1)
    for (const way of number % 2 === 0 ? WAYS : WAYS.toReversed()) {
      await machine.to("suspend", "suspended");
      await quietMoment(PATIENCE_MS);
      const { began, firstByte, wake } = await request(way);
      if (!wake.startsWith("resume;")) throw new Error(`A ${way} request was answered with "${wake}".`);
      if (number >= 0) samples.wake_ms[way].push(round(firstByte - began));
      await delay(SETTLE_MS);
    }

  const load = { cpu: cpus().length - 1, connections: options.connections, seconds: Number(options.seconds) };
  for (let number = -1; number < bursts; number += 1)
    for (const way of number % 2 === 0 ? WAYS : WAYS.toReversed()) {
      const server = { name: way, port: portOf[way], cpuMs: () => a.cpuMs() + b.cpuMs() };
      const { rps, p50_ms: p50 } = await burst(/** @type {any} */ (server), load);
      if (number < 0) continue;
      samples.throughput_rps[way].push(round(rps));
      samples.p50_ms[way].push(round(p50));
    }

  const hostOf = { local: b, forwarded: a };
  for (let number = -WARM_UP_CALLS; number < calls; number += 1)
    for (const way of number % 2 === 0 ? WAYS : WAYS.toReversed()) {
      const began = performance.now();
      await hostOf[way].call("GET", machine.path);
      if (number >= 0) samples.api_ms[way].push(round(performance.now() - began));
    }
} finally {
  await b.call("DELETE", `/apps/${APP}?force=true`).catch(() => {});
  await close();
}

/**
 * Repeats a request until the hosts have heard of each other, and of the machine.
 *
 * @template T
 * @param {() => Promise<T>} request
 */
async function heard(request) {
  for (const end = performance.now() + PATIENCE_MS; ; await delay(20))
    try {
      return await request();
    } catch (error) {
      if (performance.now() > end) throw error;
    }
}

const results = summaries(
  Object.fromEntries(
    Object.entries(samples).flatMap(([name, ways]) => WAYS.map((way) => [`${name}_${way}`, ways[way]])),
  ),
);
console.table(results);
const medianOf = (/** @type {string} */ name) => results[name]?.median ?? Number.NaN;
const figures = {
  wake: round(medianOf("wake_ms_forwarded") / medianOf("wake_ms_local")),
  throughput: round(medianOf("throughput_rps_forwarded") / medianOf("throughput_rps_local")),
  api_added_ms: round(medianOf("api_ms_forwarded") - medianOf("api_ms_local")),
};
const met = goalsMet(figures, GOALS, LEAST);
if (!options.quick) writeResult("cluster", { ...about, figures, results, samples });
process.exitCode = met ? 0 : 1;
