#!/usr/bin/env node
/**
 * `npm run bench:jail` measures what the jail of machines costs: how long a wake from the snapshot and a request to a
 * running machine take, on two platforms of one host that take turns, one with HIBERNAUT_JAIL=auto and one with off, each
 * with a machine of 256 MB; and how much memory a jail takes, from 50 that do nothing. Prints medians and spread, records
 * every sample in `bench/results/jail.json`, and exits with code 1 if a goal is missed. Root only.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startOwnPlatform } from "../scripts/lib/own-platform.mjs";
import { createProgress } from "../scripts/lib/progress.mjs";
import { setup } from "../scripts/setup.mjs";
import { createCounter } from "./lib/counter.mjs";
import { goalsMet } from "./lib/goals.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { round, summary } from "./lib/stats.mjs";
import { quietMoment } from "./proxy/wake-quiet.mjs";
import { ask } from "./proxy/wake-request.mjs";

const LAUNCHER = join(import.meta.dirname, "../packages/jail/.build/hibernaut-jail");
const APP = "jail";
const WARM_UP = 3;
const HOT = 5;
const SETTLE_MS = 300;
const PATIENCE_MS = 4_000;
const JAILS = 50;
const GOALS = { wake_costs_ms: 10, memory_kb: 1024 };

const { values: options } = parseArgs({ options: { rounds: { type: "string", default: "40" } } });
const rounds = Number(options.rounds);

await setup({ quiet: true });
const about = environment();
const progress = createProgress(2);

/** @param {"auto" | "off"} jail */
async function open(jail) {
  const { call, port, close } = await startOwnPlatform({ HIBERNAUT_JAIL: jail }, () => {});
  await call("POST", "/apps", { app_name: APP });
  const machine = await createCounter(call, APP, { service: { keep_warm: 0 } });
  return {
    suspend: () => machine.to("suspend", "suspended"),
    /** @param {string} expected How the machine has to be woken. */
    async request(expected) {
      const { began, firstByte, wake } = await ask({ host: "127.0.0.1", port, name: `${APP}.localhost` });
      if (!wake.startsWith(`${expected};`)) throw new Error(`A request was answered with "${wake}".`);
      return round(firstByte - began);
    },
    async close() {
      await call("DELETE", `/apps/${APP}?force=true`).catch(() => {});
      await close();
    },
  };
}

/** What the kernel and all processes take that it cannot drop, in KB. */
function memoryTaken() {
  const text = readFileSync("/proc/meminfo", "utf8");
  const of = (/** @type {string} */ name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0);
  return ["AnonPages", "SUnreclaim", "KernelStack", "PageTables", "Percpu", "Shmem"].reduce(
    (sum, name) => sum + of(name),
    0,
  );
}

/**
 * How much memory each of many jails takes with a program in it, beyond what that program takes without one, in KB.
 *
 * @param {string} root The directory that they build their roots on.
 */
async function memoryOfJails(root) {
  /** @param {(index: number) => [string, string[]]} command */
  const each = async (command) => {
    const before = memoryTaken();
    const children = Array.from({ length: JAILS }, (_, index) => spawn(...command(index), { stdio: "ignore" }));
    await delay(2_000);
    const after = memoryTaken();
    for (const child of children) child.kill("SIGTERM");
    spawnSync("pkill", ["-f", "^/usr/bin/sleep 997$"]);
    await Promise.all(children.map(async (child) => child.exitCode ?? child.signalCode ?? once(child, "exit")));
    await delay(1_000);
    return (after - before) / JAILS;
  };
  const places = ["--read", "/usr", "--link", "/lib", "usr/lib", "--link", "/lib64", "usr/lib64"];
  const jailed = await each((index) => {
    const user = ["--uid", String(1_999_000_000 + index), "--root", root, "--own-network"];
    return [LAUNCHER, [...user, ...places, "--device", "/dev/null", "--", "/usr/bin/sleep", "997"]];
  });
  const free = await each(() => ["/usr/bin/sleep", ["997"]]);
  return round(jailed - free);
}

/** @type {Record<"wake_auto" | "wake_off" | "hot_auto" | "hot_off" | "memory_kb", number[]>} */
const samples = { wake_auto: [], wake_off: [], hot_auto: [], hot_off: [], memory_kb: [] };
/** @type {Awaited<ReturnType<typeof open>>[]} */
const platforms = [];
const folder = mkdtempSync(join(tmpdir(), "hibernaut-jail-"));
try {
  await progress.step("memory", async () => {
    for (let time = 0; time < 3; time += 1) samples.memory_kb.push(await memoryOfJails(folder));
  });
  const kinds = /** @type {const} */ (["auto", "off"]);
  for (const kind of kinds) platforms.push(await open(kind));
  await progress.step(`${rounds} rounds`, async (step) => {
    for (let number = -WARM_UP; number < rounds; number += 1) {
      for (const index of number % 2 === 0 ? [0, 1] : [1, 0]) {
        const [kind, platform] = [kinds[index] ?? "auto", platforms[index]];
        if (platform === undefined) continue;
        await platform.suspend();
        await quietMoment(PATIENCE_MS);
        const wake = await platform.request("resume");
        await delay(SETTLE_MS);
        if (number >= 0) samples[`wake_${kind}`].push(wake);
        for (let i = 0; i < HOT; i += 1) {
          const hot = await platform.request("running");
          if (number >= 0) samples[`hot_${kind}`].push(hot);
        }
      }
      step.detail(`${number + WARM_UP + 1} of ${rounds + WARM_UP}`);
    }
  });
} finally {
  for (const platform of platforms) await platform.close();
  rmSync(folder, { recursive: true, force: true });
}

for (const name of /** @type {(keyof typeof samples)[]} */ (Object.keys(samples))) {
  const { n, min, median, p90, max } = summary(samples[name]);
  console.log(
    `${name.padEnd(10)} n, min, p50, p90, max: ${[n, min, median, p90, max].map((value) => String(value).padStart(8)).join("")}`,
  );
}
const figures = {
  wake_costs_ms: round(summary(samples.wake_auto).median - summary(samples.wake_off).median),
  hot_ratio: round(summary(samples.hot_auto).median / summary(samples.hot_off).median),
  memory_kb: summary(samples.memory_kb).median,
};
const met = goalsMet(figures, GOALS);
console.log(`     hot_ratio: ${figures.hot_ratio}`);
writeResult("jail", { ...about, figures, samples });
process.exitCode = met ? 0 : 1;
