/**
 * Two apps with three machines each for an hour, under a light load with bursts and gaps: not one request fails, nothing
 * is lost or doubled, and the platform takes no more of its host at the end than at the beginning. `HIBERNAUT_SOAK` sets
 * how long, such as `3m`.
 */
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { PATIENT } from "../helpers/patient.ts";
import { RotatingApp } from "../helpers/rotating-app.ts";
import { Place } from "../helpers/served.ts";
import { packSmallApp } from "../helpers/small-app/image.ts";
import { soakSeconds, told, type Vitals, vitalsOf } from "../helpers/soak.ts";
import type { Tally } from "../helpers/visits.ts";

const SECONDS = soakSeconds();
/** What a minute adds at least: 10,000 requests in an hour. */
const REQUESTS_PER_MINUTE = 170;
/** In seconds: long enough for visits in between, and short enough for many sleeps in an hour. */
const IDLE_S = 3;
const PROGRESS_MS = 60_000;
/** The machines are created, and the first and the last cycle end, outside of the time. */
const MORE_MS = 600_000;

/** A connection of the API's client that has not been closed yet, or a log file that is open. A leak has hundreds. */
const MORE_FILES = 8;
/** Node's heap grows by 20 MB in the first ten minutes, then no more. In an hour, this would be 1.3 KB per request. */
const MORE_MB = 64;

beforeAll(packSmallApp);
const place = Place.forTests({
  // The time limits of requests and wakes are those that users have.
  HIBERNAUT_BOOT_TIMEOUT: PATIENT.HIBERNAUT_BOOT_TIMEOUT,
  HIBERNAUT_IDLE_CHECK_INTERVAL: "1",
  HIBERNAUT_LOG_LEVEL: "warn",
});

/** Every kind of load, once. */
async function cycle(app: RotatingApp): Promise<void> {
  await app.burst(randomInt(500, 3000));
  await app.steady(randomInt(5000, 30_000));
  await app.onEdge(randomInt(5000, 20_000));
  await app.gap();
}

/** Lives through one cycle after the other until the time is over, or another app has failed. */
async function liveUntil(end: number, apps: RotatingApp[]): Promise<void> {
  const failed = new AbortController();
  const live = async (app: RotatingApp) => {
    try {
      while (performance.now() < end && !failed.signal.aborted) await cycle(app);
    } catch (error) {
      failed.abort();
      throw error;
    }
  };
  const results = await Promise.allSettled(apps.map(live));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

const tell = (text: string) => process.stderr.write(`soak: ${text}\n`);

function sumOf(apps: RotatingApp[]): Tally {
  const tallies = apps.map(({ visits }) => visits.tally);
  const wakes: Tally["wakes"] = {};
  for (const [kind, count] of tallies.flatMap((tally) => Object.entries(tally.wakes)))
    wakes[kind] = (wakes[kind] ?? 0) + count;
  return {
    requests: tallies.reduce((sum, { requests }) => sum + requests, 0),
    failed: tallies.reduce((sum, { failed }) => sum + failed, 0),
    failures: tallies.flatMap(({ failures }) => failures),
    wakes,
  };
}

/** Tells how it is, once a minute, until the signal aborts. */
async function tellProgress(apps: RotatingApp[], over: AbortSignal): Promise<void> {
  for (let minute = 1; ; minute += 1) {
    await delay(PROGRESS_MS, undefined, { signal: over }).catch(() => {}); // aborted: the next line returns
    if (over.aborted) return;
    const { requests, failed, wakes } = sumOf(apps);
    const vitals = told(await vitalsOf(place.served.pid));
    tell(`minute ${minute}: ${requests} requests, ${failed} failed, ${wakes.resume ?? 0} waited for a wake; ${vitals}`);
  }
}

/** Tells the result, also of a soak that was broken off. */
async function tellResult(apps: RotatingApp[], began: Vitals): Promise<void> {
  const { requests, failed, failures, wakes } = sumOf(apps);
  tell(`began: ${told(began)}; ended: ${told(await vitalsOf(place.served.pid))}`);
  tell(`${requests} requests, ${failed} failed, by wake: ${JSON.stringify(wakes)}`);
  for (const failure of failures) tell(failure);
  for (const { name } of apps) {
    const { usage } = await place.client.getUsage({ group_by: "machine", app: name });
    for (const { machine_id: id, running_seconds: ran, suspended_seconds: slept, wakes: woken } of usage)
      tell(`${name} ${id}: ran ${Math.round(ran)} s, slept ${Math.round(slept)} s, ${woken.resume} wakes`);
  }
}

test(`two apps sleep and wake for ${SECONDS} s: nothing fails, is lost or doubled, and nothing leaks`, {
  timeout: SECONDS * 1000 + MORE_MS,
}, async () => {
  const over = new AbortController();
  onTestFinished(() => over.abort());
  await place.client.createApp("blog");
  const apps = [];
  for (const name of [place.app, "blog"]) apps.push(await RotatingApp.create(place, name, IDLE_S));
  // The first cycle loads code and fills caches. After each, everything sleeps, so the two looks are comparable.
  await liveUntil(performance.now() + 1, apps);
  const began = await vitalsOf(place.served.pid);
  const progress = tellProgress(apps, over.signal);
  try {
    await liveUntil(performance.now() + SECONDS * 1000, apps);
  } finally {
    over.abort();
    await progress;
    await tellResult(apps, began);
  }

  const ended = await vitalsOf(place.served.pid);
  const { requests, failures, wakes } = sumOf(apps);
  expect(failures).toEqual([]);
  expect(wakes, "what slept has kept its memory").not.toHaveProperty("cold");
  expect(requests).toBeGreaterThan((SECONDS / 60) * REQUESTS_PER_MINUTE);
  for (const app of apps) await app.check();
  expect(ended.files).toBeLessThanOrEqual(began.files + MORE_FILES);
  expect(ended.memoryMb).toBeLessThanOrEqual(began.memoryMb + MORE_MB);
  await place.client.destroyApp("blog", { force: true });
});
