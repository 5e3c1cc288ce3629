#!/usr/bin/env node
/**
 * `npm run bench:tcp` compares the proxy's TCP ports with HAProxy in TCP mode: one process each, in turns, 64 connections
 * that carry requests with small and with large responses. Prints medians and spread, records every sample in
 * `bench/results/tcp.json`, and exits with code 1 if a goal is missed.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setup } from "../../scripts/setup.mjs";
import { commandLine, environment, writeResult } from "../lib/record.mjs";
import { median, round, summary } from "../lib/stats.mjs";
import { burst } from "./burst.mjs";
import { Servers } from "./servers.mjs";

/** The share of HAProxy's throughput. */
const GOALS = { of_haproxy: 0.9 };
const SIZES = [100, 65_536];
const CONNECTIONS = "64";
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
    for (const name of ["tcp", "haproxy-tcp"]) all.push(await servers.proxy(name, PROXY_CPU, app.port));
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
  } finally {
    servers.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
for (const { goal, reached, met } of goals) console.log(`${met ? "met" : "MISSED"}: ${goal}: ${reached}`);
writeResult("tcp", { command: commandLine("bench:tcp"), ...about, goals, samples });
process.exitCode = goals.every(({ met }) => met) ? 0 : 1;
process.exit();
