#!/usr/bin/env node
/**
 * `npm run bench:scale` measures what etcd and a host's copy of the cluster directory take on this machine, simulates what
 * the hosts of clusters of 3 to 10,000 hosts write, and says for each size what that needs of etcd and of every host. Prints
 * tables, and records every figure in `bench/results/scale.json`.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setup } from "../scripts/setup.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { median, round } from "./lib/stats.mjs";
import { measureFanOut, measureWrites } from "./scale/measure.mjs";
import { simulate } from "./scale/simulate.mjs";

const SIZES = [3, 10, 100, 1000, 10_000];
/** Assumptions: of each host, and of each machine. */
const ASSUMED = { machinesPerHost: 100, wakesPerHour: 4, seconds: 60 };
const FAN_OUT = [1, 10, 40];
const PER_SECOND = 50;
const MEMORY_PER = 20_000;

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "3" }, seconds: { type: "string", default: "4" } },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];

await setup({ quiet: true, tests: true });
const about = environment();

/**
 * Returns the medians of several runs.
 *
 * @template {Record<string, number>} T
 * @param {() => Promise<T>} run
 * @returns {Promise<T & { samples: T[] }>}
 */
async function medians(run) {
  /** @type {T[]} */
  const samples = [];
  for (let number = 0; number < rounds; number += 1) samples.push(await run());
  const names = Object.keys(samples[0] ?? {});
  const middle = names.map((name) => [name, round(median(samples.map((sample) => sample[name] ?? Number.NaN)))]);
  return { ...Object.fromEntries(middle), samples };
}

const writes = [];
for (const members of [1, 3])
  for (const writers of [1, 64])
    writes.push({ members, writers, ...(await medians(() => measureWrites({ members, writers, seconds }))) });
console.log("\nwrites to etcd, each durable");
console.table(writes.map(({ samples: _, ...row }) => row));

const fanOut = [];
for (const hosts of FAN_OUT)
  fanOut.push({ hosts, ...(await medians(() => measureFanOut({ hosts, perSecond: PER_SECOND, seconds }))) });
console.log(`\n${PER_SECOND} changes a second, followed by hosts`);
console.table(fanOut.map(({ samples: _, ...row }) => row));

// In a process of its own, whose memory nothing else uses.
const memory = JSON.parse(
  execFileSync(process.execPath, ["--expose-gc", join(import.meta.dirname, "scale/memory.mjs"), `${MEMORY_PER}`], {
    encoding: "utf8",
  }),
);
console.log(`\nmemory of one machine in each host: ${memory.view_bytes} bytes in its copy of the directory`);

const most = Math.max(...writes.filter(({ members }) => members === 3).map(({ per_second: rate }) => rate));
const etcdUs = fanOut.at(-1)?.etcd_cpu_us ?? Number.NaN;
const hostUs = fanOut.at(-1)?.host_cpu_us ?? Number.NaN;
const writeUs = writes.find(({ members, writers }) => members === 3 && writers === 64)?.etcd_cpu_us ?? Number.NaN;
const sizes = SIZES.map((hosts) => {
  const load = simulate({ hosts, ...ASSUMED });
  return {
    hosts,
    machines: hosts * ASSUMED.machinesPerHost,
    writes: round(load.writes, 1),
    "of what etcd can": round(load.peakWrites / most, 3),
    delivered: round(load.delivered, 0),
    "etcd's CPUs": round((load.writes * writeUs + load.delivered * etcdUs) / 1e6, 2),
    "CPU of a host": round((load.changes * hostUs) / 1e6, 4),
    "MB in a host": round((hosts * ASSUMED.machinesPerHost * memory.view_bytes) / 1024 / 1024, 1),
  };
});
console.log(
  `\n${ASSUMED.machinesPerHost} machines on each host, each of which wakes ${ASSUMED.wakesPerHour} times an hour; per second`,
);
console.table(sizes);
const measured = { writes, fan_out: fanOut, memory };
writeResult("scale", { ...about, assumed: ASSUMED, measured, sizes });
