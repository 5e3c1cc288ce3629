#!/usr/bin/env node
/**
 * `npm run bench:dashboard` measures the dashboard's overview in Debian's Chromium, with 500 machines that a stand-in for
 * the platform makes up: how long a cold browser takes to show it, and frames and memory while 50 states change per
 * second. Prints medians and spread, records every sample in `bench/results/dashboard.json`, and exits with code 1 if a
 * goal is missed.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openBrowser } from "../../packages/platform/test/helpers/browser.ts";
import { setup } from "../../scripts/setup.mjs";
import { goalsMet } from "../lib/goals.mjs";
import { environment, writeResult } from "../lib/record.mjs";
import { percentile, round, summaries } from "../lib/stats.mjs";
import { startStandIn } from "./stand-in.mjs";

const MACHINES = 500;
const PER_SECOND = 50;
/** Long enough for the list of machines to be read again twice. */
const ROUND_S = 20;
const MB = 1024 * 1024;
/** Milliseconds until machines are on screen; frames per second; memory of the page's process. */
const GOALS = { first_view_ms: 1000, memory_mb: 150 };
const LEAST = { frames_per_second: 50 };

/** Runs in the page: notes the time between frames, in milliseconds. */
const COUNT_FRAMES = `
  window.frameGaps = [];
  let last = performance.now();
  const frame = (now) => {
    window.frameGaps.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
`;

const { values: options } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
const rounds = Number(options.rounds);

await setup({ quiet: true, tests: true });
const about = environment();
/** @type {Record<"first_view_ms" | "frames_per_second" | "longest_frame_ms" | "memory_mb" | "heap_mb", number[]>} */
const samples = { first_view_ms: [], frames_per_second: [], longest_frame_ms: [], memory_mb: [], heap_mb: [] };
for (let turn = 0; turn < rounds; turn++) await measure(turn);

const results = summaries(samples, 1);
console.table(results);
const goals = { ...GOALS, ...LEAST };
writeResult("dashboard", { ...about, goals, results, samples });
const figures = {
  first_view_ms: results.first_view_ms?.median ?? Number.NaN,
  frames_per_second: results.frames_per_second?.median ?? Number.NaN,
  memory_mb: results.memory_mb?.max ?? Number.NaN,
};
process.exitCode = goalsMet(figures, GOALS, LEAST) ? 0 : 1;

/** @param {number} turn */
async function measure(turn) {
  const standIn = await startStandIn({ machines: MACHINES, seed: turn + 1 });
  const browser = await openBrowser();
  try {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
    const began = performance.now();
    await page.goto(standIn.url, { waitUntil: "commit" });
    await page.locator(".tile").first().waitFor();
    samples.first_view_ms.push(round(performance.now() - began, 0));
    await page.locator(".plot-canvas canvas").first().waitFor();

    await page.evaluate(COUNT_FRAMES);
    let index = 0;
    const changing = setInterval(() => standIn.step(index++ * 7), 1000 / PER_SECOND);
    await delay(ROUND_S * 1000);
    clearInterval(changing);
    const gaps = /** @type {number[]} */ (await page.evaluate("window.frameGaps"));
    samples.frames_per_second.push(round((1000 * gaps.length) / gaps.reduce((sum, gap) => sum + gap, 0), 1));
    samples.longest_frame_ms.push(round(percentile(gaps, 1), 0));
    const session = await page.context().newCDPSession(page);
    await session.send("HeapProfiler.collectGarbage");
    await session.send("Performance.enable");
    const { metrics } = await session.send("Performance.getMetrics");
    samples.heap_mb.push(round((metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? NaN) / MB, 1));
    samples.memory_mb.push(round(await rendererMemory(browser), 0));
  } finally {
    await browser.close();
    standIn.close();
  }
}

/**
 * The memory of the page's process that it shares with nobody, in MB.
 *
 * @param {import("playwright-core").Browser} browser
 */
async function rendererMemory(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const sizes = processInfo
    .filter(({ type }) => type === "renderer")
    .map(({ id }) => /^Private_Dirty: +(\d+) kB$/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, "utf8"))?.[1]);
  return Math.max(...sizes.map((kilobytes) => Number(kilobytes) / 1024));
}
