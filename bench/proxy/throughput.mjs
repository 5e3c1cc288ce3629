#!/usr/bin/env node
/**
 * `npm run bench:proxy` measures how many requests the proxy forwards. Each round loads the app directly, through this
 * proxy (the whole proxy, and its HTTP engine alone), through nginx, HAProxy and Caddy, through spliced sockets, and through
 * what you could build on Node's libraries. Each is one process. The proxy has one CPU to itself; app and load share
 * another. Prints medians and spread, records every sample in `bench/results/proxy.json`, and exits with code 1 if a
 * goal is missed.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createProgress } from "../../scripts/lib/progress.mjs";
import { setup } from "../../scripts/setup.mjs";
import { goalsMet } from "../lib/goals.mjs";
import { environment, writeResult } from "../lib/record.mjs";
import { median, round } from "../lib/stats.mjs";
import { burst } from "./burst.mjs";
import { NATIVE_PROXIES, NODE_PROXIES, Servers } from "./servers.mjs";

const USAGE = `npm run bench:proxy -- [options]

  --only A,B       only these proxies, out of ${[...NODE_PROXIES, ...NATIVE_PROXIES].join(", ")}; records nothing
  --rounds N       bursts at each proxy (default: 7)
  --seconds N      length of a burst (default: 4)
  --connections N  connections that the load keeps open (default: 64)
  --bytes N        size of the app's response (default: 100)
`;
/** The multiple of nginx's p99, and shares of the throughput of nginx, of Caddy and of the best library. */
const GOALS = { p99_of_nginx: 2 };
const LEAST = { of_nginx: 0.8, of_caddy: 2.5, of_library: 2 };
/** The proxy libraries. undici and node:http are clients, around which you would have to write a proxy. */
const LIBRARIES = ["fastify-http-proxy", "http-proxy-3"];
/** Bursts before the first one that counts: what V8 still compiles would take time from the proxy on its one CPU. */
const WARM_UP = 3;

const { values: options } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "4" },
    connections: { type: "string", default: "64" },
    bytes: { type: "string", default: "100" },
    help: { type: "boolean" },
  },
});
if (options.help) {
  process.stdout.write(USAGE);
  process.exit();
}
const rounds = Number(options.rounds);
const seconds = Number(options.seconds);
const names = options.only?.split(",") ?? [...NODE_PROXIES, ...NATIVE_PROXIES];
/** The proxy under test has the last CPU to itself. */
const PROXY_CPU = cpus().length - 1;
const OTHER_CPU = 0;

/** @typedef {import("./burst.mjs").Sample} Sample */

/** @param {Sample[]} all @param {keyof Sample} key */
function medianOf(all, key) {
  return median(all.map((sample) => sample[key]));
}

/** @param {Record<string, Sample[]>} samples @param {Record<string, number>} memory */
function print(samples, memory) {
  console.log(`\n${options.connections} connections, ${options.bytes} bytes, ${rounds} rounds of ${seconds} s;`);
  console.log(`${cpus().length} CPUs (${cpus()[0]?.model}), load ${loadavg()[0]?.toFixed(1)}\n`);
  console.log("               requests/s      min      max   p50 ms   p99 ms   CPU us/request   RSS MB");
  for (const [name, all] of Object.entries(samples)) {
    const rps = all.map((sample) => sample.rps);
    const columns = [
      [medianOf(all, "rps").toFixed(0), 11],
      [Math.min(...rps).toFixed(0), 8],
      [Math.max(...rps).toFixed(0), 8],
      [medianOf(all, "p50_ms").toFixed(2), 8],
      [medianOf(all, "p99_ms").toFixed(2), 8],
      [name === "direct" ? "" : medianOf(all, "cpu_us").toFixed(1), 16],
      [memory[name]?.toFixed(0) ?? "", 8],
    ];
    console.log(`${name.padEnd(14)}${columns.map(([text, width]) => String(text).padStart(Number(width))).join(" ")}`);
  }
}

/** What is compared with the goals. @param {Record<string, Sample[]>} samples */
function figuresOf(samples) {
  /**
   * Compares round by round, because whatever slows the host down slows both.
   *
   * @param {string} other
   * @param {keyof Sample} key
   */
  const ratio = (other, key) => {
    const ratios = (samples.hibernaut ?? []).map((sample, at) => sample[key] / (samples[other]?.[at]?.[key] ?? NaN));
    return round(median(ratios));
  };
  return {
    p99_of_nginx: ratio("nginx", "p99_ms"),
    of_nginx: ratio("nginx", "rps"),
    of_caddy: ratio("caddy", "rps"),
    of_library: Math.min(...LIBRARIES.map((library) => ratio(library, "rps"))),
  };
}

await setup({ quiet: true, tests: true });
const about = environment();
const folder = mkdtempSync(join(tmpdir(), "hibernaut-bench-"));
const servers = new Servers(folder);
process
  .on("SIGINT", () => process.exit(130))
  .on("exit", () => {
    servers.close();
    rmSync(folder, { recursive: true, force: true });
  });
const progress = createProgress(rounds + 1);
const app = await servers.app(OTHER_CPU, Number(options.bytes));
const all = [{ ...app, name: "direct" }];
for (const name of names) all.push(await servers.proxy(name, PROXY_CPU, app.port));
/** @type {Record<string, Sample[]>} */
const samples = Object.fromEntries(all.map(({ name }) => [name, []]));
await progress.step("warm-up", async (step) => {
  step.show();
  for (let time = 0; time < WARM_UP; time += 1)
    for (const server of all) await burst(server, { cpu: OTHER_CPU, connections: options.connections, seconds });
});
for (let number = 1; number <= rounds; number += 1)
  await progress.step(`round ${number}`, async (step) => {
    step.show();
    for (const server of all)
      samples[server.name]?.push(await burst(server, { cpu: OTHER_CPU, connections: options.connections, seconds }));
  });
const memory = Object.fromEntries(all.slice(1).map((server) => [server.name, server.rssMb()]));
print(samples, memory);
if (options.only === undefined) {
  const figures = figuresOf(samples);
  console.log("");
  process.exitCode = goalsMet(figures, GOALS, LEAST) ? 0 : 1;
  const { only: _only, help: _help, ...settings } = options;
  const goals = { ...GOALS, ...LEAST };
  writeResult("proxy", { ...about, settings, goals, figures, rss_mb: memory, samples });
}
process.exit();
