#!/usr/bin/env node
/**
 * `npm run bench:wake` measures how fast machines cold start, suspend and resume: on the real platform and real QEMU,
 * with the counter's image and 256 MB. Prints medians and spread, records every sample in `bench/results/wake.json`,
 * and exits with code 1 if a goal is missed.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { askUntilAnswered } from "../scripts/lib/ask.mjs";
import { startPlatform } from "../scripts/lib/platform.mjs";
import { setup } from "../scripts/setup.mjs";
import { commandLine, environment, writeResult } from "./lib/record.mjs";
import { round, summary } from "./lib/stats.mjs";

const ROOT = join(import.meta.dirname, "..");
const APP = "bench";
const PORT = 8080;
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
const dataDir = mkdtempSync(join(tmpdir(), "hibernaut-bench-"));
Object.assign(process.env, {
  HIBERNAUT_DATA_DIR: dataDir,
  XDG_CONFIG_HOME: join(dataDir, "cfg"),
  HIBERNAUT_API_LISTEN: "127.0.0.1:0",
  HIBERNAUT_KEEP_WARM: "0", // every start is to come from the snapshot; `bench:warm` measures the others
});
const platform = await startPlatform();
const { call } = platform;
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
  const config = { image: `oci:${join(ROOT, ".build/counter")}:latest`, services: [{ internal_port: PORT }] };
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

  const results = Object.fromEntries(Object.entries(samples).map(([name, all]) => [name, summary(all, 1)]));
  console.table(results);
  const resume = results.resume_ms?.median ?? Number.POSITIVE_INFINITY;
  const ratio = (results.cold_start_ms?.median ?? 0) / resume;
  const slowest = Math.max(results.first_suspend_ms?.median ?? 0, results.suspend_ms?.median ?? 0);
  console.log(
    `a resume takes ${resume} ms (goal: under ${GOALS.resume_ms}), a cold start ${ratio.toFixed(1)} times as long`,
  );
  console.log(`slower median of the two kinds of suspend: ${slowest} ms (goal: under ${GOALS.suspend_ms})`);
  writeResult("wake", { command: commandLine("bench:wake"), ...about, accelerator, qemu, results, samples });
  process.exitCode = resume < GOALS.resume_ms && slowest < GOALS.suspend_ms ? 0 : 1;
} finally {
  await platform.stop();
  const uninstall = [join(ROOT, "packages/cli/bin/hibernaut.js"), "uninstall"];
  spawnSync(process.execPath, uninstall, { stdio: "inherit" });
  rmSync(dataDir, { recursive: true, force: true });
}
