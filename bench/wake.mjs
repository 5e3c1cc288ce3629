#!/usr/bin/env node
/**
 * `npm run bench:wake` measures how fast machines cold start, suspend and resume: on the real platform and real QEMU,
 * with the counter's image and 256 MB. Prints medians and spread, records every sample in `bench/results/wake.json`,
 * and exits with code 1 if a goal is missed.
 */
import { utimesSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { askUntilAnswered } from "../scripts/lib/ask.mjs";
import { startOwnPlatform } from "../scripts/lib/own-platform.mjs";
import { setup } from "../scripts/setup.mjs";
import { IMAGE, PORT } from "./lib/counter.mjs";
import { goalsMet } from "./lib/goals.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { round, summaries } from "./lib/stats.mjs";

const APP = "bench";
/** Medians. A ratio of cold starts to resumes is not among them: a faster cold start would miss it. */
const GOALS = { suspend_ms: 250, resume_ms: 500 };

/** How long each sleep lasts: long enough for the snapshot to be sealed, as it is when a real visitor comes. */
const ASLEEP_MS = 1000;

const { values } = parseArgs({
  options: {
    cold: { type: "string", default: "5" },
    cycles: { type: "string", default: "30" },
    touched: { type: "string", default: "10" },
  },
});

/** @param {() => Promise<unknown>} work */
async function timed(work) {
  const began = performance.now();
  await work();
  return round(performance.now() - began, 1);
}

await setup({ quiet: true });
const about = environment();
// Every start is to come from the snapshot; `bench:warm` measures the others.
const { call, dataDir, close } = await startOwnPlatform({ HIBERNAUT_KEEP_WARM: "0" });
/** @type {Record<string, number[]>} */
const samples = {
  cold_start_ms: [],
  first_suspend_ms: [],
  suspend_ms: [],
  resume_ms: [],
  resume_read_whole_ms: [],
};
/** @param {string} name @param {() => Promise<unknown>} work */
const sample = async (name, work) => samples[name]?.push(await timed(work));
try {
  const { accelerator, hypervisor_version: qemu } = await call("GET", "/health");
  await call("POST", "/apps", { app_name: APP });
  const config = { image: IMAGE, services: [{ internal_port: PORT }] };
  const machine = await call("POST", `/apps/${APP}/machines`, { config, skip_launch: true });
  const path = `/apps/${APP}/machines/${machine.machine_id}`;
  const answer = async () => {
    await call("POST", `${path}/start`);
    await call("GET", `${path}/wait`);
    await askUntilAnswered(`http://${machine.private_address}:${PORT}/`);
  };
  const suspend = async () => {
    await call("POST", `${path}/suspend`);
    await call("GET", `${path}/wait?state=suspended`);
  };
  for (let cycle = 0; cycle < Number(values.cold); cycle += 1) {
    await sample("cold_start_ms", answer);
    // Right after a boot, most of the memory has not been written to the disk yet.
    await sample("first_suspend_ms", suspend);
    await call("POST", `${path}/stop`);
    await call("GET", `${path}/wait?state=stopped`);
  }
  await answer();
  for (let cycle = 0; cycle < Number(values.cycles); cycle += 1) {
    await sample("suspend_ms", suspend);
    await delay(ASLEEP_MS);
    await sample("resume_ms", answer);
  }
  for (let cycle = 0; cycle < Number(values.touched); cycle += 1) {
    await suspend();
    await delay(ASLEEP_MS);
    // As after a restart of the host, all of the memory is read before it is resumed.
    utimesSync(join(dataDir, "machines", machine.machine_id, "memory"), new Date(), new Date());
    await sample("resume_read_whole_ms", answer);
  }
  await call("DELETE", `/apps/${APP}?force=true`);

  const results = summaries(samples, 1);
  console.table(results);
  const medianOf = (/** @type {string} */ name) => results[name]?.median ?? Number.NaN;
  const resume = medianOf("resume_ms");
  console.log(`a cold start takes ${(medianOf("cold_start_ms") / resume).toFixed(1)} times as long as a resume`);
  // Of the two kinds of suspend, the slower one.
  const slowest = Math.max(medianOf("first_suspend_ms"), medianOf("suspend_ms"));
  const met = goalsMet({ suspend_ms: slowest, resume_ms: resume }, GOALS);
  writeResult("wake", { ...about, accelerator, qemu, results, samples });
  process.exitCode = met ? 0 : 1;
} finally {
  await close();
}
