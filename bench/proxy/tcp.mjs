#!/usr/bin/env node
/**
 * `npm run bench:tcp` compares the proxy's TCP ports with HAProxy in TCP mode, and with what C alone would reach: one
 * process each, in turns, 64 connections that carry requests with small and with large responses. A single connection then
 * shows how much later answers come than directly from the app. Prints medians and spread, records every sample in
 * `bench/results/tcp.json`, and exits with code 1 if a goal is missed.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setup } from "../../scripts/setup.mjs";
import { environment, writeResult } from "../lib/record.mjs";
import { median, round, summary } from "../lib/stats.mjs";
import { burst } from "./burst.mjs";
import { Servers } from "./servers.mjs";

/** The share of HAProxy's throughput, and how many milliseconds later the median answer may come than without a proxy. */
const GOALS = { of_haproxy: 0.9, added_p50_ms: 0.2 };
const SIZES = [100, 65_536];
const CONNECTIONS = "64";
/** The latency is that of a single connection: of 64, each waits for the others. */
const ALONE = "1";
/** Bursts before the first one that counts: V8 still compiles. */
const WARM_UP = 2;
const PROXY_CPU = cpus().length - 1;
const OTHER_CPU = 0;

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "7" }, seconds: { type: "string", default: "3" } },
});

await setup({ quiet: true, tests: true });
const about = environment();
/** @type {Record<string, Record<string, import("./burst.mjs").Sample[]>>} */
const samples = {};
const goals = [];
for (const bytes of SIZES) {
  const folder = mkdtempSync(join(tmpdir(), "hibernaut-bench-"));
  const servers = new Servers(folder);
  try {
    const app = await servers.app(OTHER_CPU, bytes);
    const all = [{ ...app, name: "direct" }];
    for (const name of ["tcp", "c-tcp", "haproxy-tcp"]) all.push(await servers.proxy(name, PROXY_CPU, app.port));
    /** @type {Record<string, import("./burst.mjs").Sample[]>} */
    const own = Object.fromEntries(all.map(({ name }) => [name, []]));
    samples[`${bytes} bytes`] = own;
    for (let number = -WARM_UP; number < Number(values.rounds); number += 1)
      for (const server of all) {
        const sample = await burst(server, {
          cpu: OTHER_CPU,
          connections: CONNECTIONS,
          seconds: Number(values.seconds),
        });
        if (number >= 0) own[server.name]?.push(sample);
      }
    console.log(`${bytes} bytes, ${CONNECTIONS} connections`);
    for (const [name, list] of Object.entries(own)) {
      const {
        min,
        median: middle,
        max,
      } = summary(
        list.map(({ rps }) => rps),
        0,
      );
      const p50 = round(median(list.map(({ p50_ms: ms }) => ms)));
      const cpu = round(median(list.map(({ cpu_us: us }) => us)));
      const rates = `${middle} requests/s (${round(min, 0)}-${round(max, 0)})`;
      console.log(`  ${name.padEnd(12)} ${rates}, p50 ${p50} ms, ${cpu} µs of CPU time a request`);
    }
    const pairs = (own.tcp ?? []).map(({ rps }, index) => rps / (own["haproxy-tcp"]?.[index]?.rps ?? Number.NaN));
    const reached = round(median(pairs));
    goals.push({
      goal: `${bytes} bytes: at least ${GOALS.of_haproxy} of HAProxy`,
      reached,
      met: reached >= GOALS.of_haproxy,
    });
    /** @type {Record<string, import("./burst.mjs").Sample[]>} */
    const alone = Object.fromEntries(all.map(({ name }) => [name, []]));
    samples[`${bytes} bytes, one connection`] = alone;
    for (let number = 0; number < Number(values.rounds); number += 1)
      for (const server of all)
        alone[server.name]?.push(await burst(server, { cpu: OTHER_CPU, connections: ALONE, seconds: 1 }));
    const late = Object.entries(alone).map(([name, list]) => [
      name,
      round(median(list.map(({ p50_ms: ms }) => ms)), 3),
    ]);
    console.log(`  one connection, p50 in ms: ${late.map(([name, ms]) => `${name} ${ms}`).join(", ")}`);
    const added = round(
      median((alone.tcp ?? []).map(({ p50_ms: ms }, index) => ms - (alone.direct?.[index]?.p50_ms ?? Number.NaN))),
      3,
    );
    goals.push({
      goal: `${bytes} bytes: p50 at most ${GOALS.added_p50_ms} ms later than from the app`,
      reached: added,
      met: added <= GOALS.added_p50_ms,
    });
  } finally {
    servers.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
for (const { goal, reached, met } of goals) console.log(`${met ? "met" : "MISSED"}: ${goal}: ${reached}`);
writeResult("tcp", { ...about, goals, samples });
process.exitCode = goals.every(({ met }) => met) ? 0 : 1;
process.exit();
