#!/usr/bin/env node
/**
 * `npm run bench:compose` measures projects of several services, on a platform of its own that has their images. Prints medians and
 * spread, records every sample in `bench/results/compose.json`, and exits with code 1 if a goal is missed.
 *
 * - `compose up` of eight services, from nothing to healthy, compared with the sum of their cold starts over two cores. Those are
 *   taken from an `up` that starts one service at a time, which alternates with the measured one.
 * - One request to the front of a web server, an app and a database that all sleep, compared with the same request while only one
 *   of the three sleeps. The four take turns. `running` is when the last of those that slept ran again.
 */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import { postgresImage } from "../../packages/platform/test/helpers/postgres-image.ts";
import { caddyImage, nginxImage, redisImage } from "../../packages/platform/test/helpers/projects/images.ts";
import { ORDERS_IMAGE } from "../../packages/platform/test/helpers/qemu-world.ts";
import { packSmallApp, SMALL_APP } from "../../packages/platform/test/helpers/small-app/image.ts";
import { ROOT } from "../../scripts/lib/node.mjs";
import { startOwnPlatform } from "../../scripts/lib/own-platform.mjs";
import { setup } from "../../scripts/setup.mjs";
import { goalsMet } from "../lib/goals.mjs";
import { environment, writeResult } from "../lib/record.mjs";
import { mapValues, median, round, summaries } from "../lib/stats.mjs";
import { quietMoment } from "../proxy/wake-quiet.mjs";
import { eight, threeTiers } from "./files.mjs";

/** What the goals are for: `up` starts this many services at once. */
const CORES = 2;
const GOALS = { up_to_cold_starts: 1.2, project_to_slowest_wake: 1.5 };
/** Rounds of wakes before the first one that counts: V8 and the emulator need some until they have compiled what runs often. */
const WARM_UP = 3;
/** How long a sample waits for the host to become quiet. */
const PATIENCE_MS = 4_000;
/** How long machines sleep before they are asked: until their snapshots are sealed, as when a real visitor comes. */
const ASLEEP_MS = 500;
const TIERS = /** @type {const} */ (["web", "app", "db"]);

const { values: options } = parseArgs({
  options: {
    ups: { type: "string", default: "5" },
    wakes: { type: "string", default: "30" },
    quick: { type: "boolean", default: false },
  },
});
const [ups, wakes] = options.quick ? [1, 5] : [Number(options.ups), Number(options.wakes)];

await setup({ quiet: true, tests: true });
await packSmallApp();
const about = environment();
// Every wake is to come from the snapshot; `bench:warm` measures the others.
const platform = await startOwnPlatform({ HIBERNAUT_KEEP_WARM: "0", HIBERNAUT_READY_TIMEOUT_MS: "120000" });
const { call, dataDir, env, port } = platform;
/** @type {Record<string, number[]>} */
const samples = {};
/** The machines of the three tiers. @type {Record<string, string>} */
let tiers = {};
const add = (/** @type {string} */ name, /** @type {number} */ ms) => void (samples[name] ??= []).push(round(ms, 0));

/** Writes a project. Returns what runs `hibernaut compose` in it. @param {string} name @param {Record<string, string>} files */
function project(name, files) {
  const cwd = join(dataDir, name);
  mkdirSync(cwd);
  for (const [file, content] of Object.entries(files)) writeFileSync(join(cwd, file), content);
  const cli = join(ROOT, "packages/cli/bin/hibernaut.js");
  return (/** @type {string[]} */ ...words) =>
    promisify(execFile)(process.execPath, [cli, "compose", ...words], { cwd, env });
}

/** @param {() => Promise<unknown>} work */
async function timed(work) {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** The machines of a project, by service. @param {string} name */
async function machinesOf(name) {
  const { apps } = await call("GET", "/apps");
  /** @type {Record<string, string>} */
  const paths = {};
  for (const { name: app } of apps) {
    if (!app.startsWith(`${name}-`)) continue;
    const [machine] = await call("GET", `/apps/${app}/machines`);
    paths[app.slice(name.length + 1)] = `/apps/${app}/machines/${machine.id}`;
  }
  return paths;
}

/** How long the cold starts of a project took in all. */
async function coldStarts() {
  const paths = Object.values(await machinesOf("eight"));
  const all = await Promise.all(paths.map((path) => call("GET", `${path}/events`)));
  const durations = all.flat().filter(({ type, details }) => type === "started" && details.kind === "cold");
  if (durations.length !== 8) throw new Error(`There were ${durations.length} cold starts.`);
  return durations.reduce((sum, { details }) => sum + details.duration_ms, 0);
}

/** When a machine of the three last began to run. @param {string} tier */
async function resumedAt(tier) {
  /** @type {{ type: string, at: string }[]} */
  const events = await call("GET", `${tiers[tier]}/events`);
  return Math.max(...events.filter(({ type }) => type === "started").map(({ at }) => Date.parse(at)));
}

/** One request over a new connection that passes through all tiers. Returns how long it took. */
async function askFront() {
  const body = JSON.stringify([{ companyName: "Bench", country: "Norway" }]);
  const headers = { host: "three-web.localhost", "content-type": "application/json", connection: "close" };
  return timed(async () => {
    const sent = request({ host: "127.0.0.1", port, method: "POST", path: "/suppliers", headers, agent: false });
    const answer = await new Promise((resolve, reject) => {
      sent.once("response", resolve).once("error", reject).end(body);
    });
    const said = await text(answer);
    if (answer.statusCode !== 201) throw new Error(`The front answered ${answer.statusCode}: ${said.slice(0, 300)}`);
  });
}

try {
  const images = {
    ...{
      nginx: await nginxImage(),
      redis: await redisImage(),
      caddy: await caddyImage(),
      postgres: await postgresImage(),
    },
    ...{ small: SMALL_APP, orders: ORDERS_IMAGE },
  };
  const compose = project("eight", eight(images));
  const down = () => compose("down", "--volumes", "--yes");
  add("up_with_import", await timed(() => compose("up")));
  await down();
  for (let number = 0; number < ups; number += 1) {
    await quietMoment(PATIENCE_MS);
    await compose("up", "--parallel", "1");
    add("cold_starts", await coldStarts());
    await down();
    await quietMoment(PATIENCE_MS);
    add("up", await timed(() => compose("up")));
    await down();
    console.error(`up ${number + 1} of ${ups}`);
  }

  const three = project("three", threeTiers(images));
  await three("up");
  tiers = await machinesOf("three");
  const kinds = [[...TIERS], ...TIERS.map((tier) => [tier])];
  await askFront();
  for (let number = -WARM_UP; number < wakes; number += 1) {
    for (let turn = 0; turn < kinds.length; turn += 1) {
      // Each is first, second, third and last equally often.
      const asleep = /** @type {string[]} */ (kinds[(turn + number + WARM_UP) % kinds.length]);
      for (const tier of asleep) {
        await call("POST", `${tiers[tier]}/suspend`);
        await call("GET", `${tiers[tier]}/wait?state=suspended`);
      }
      await delay(ASLEEP_MS);
      await quietMoment(PATIENCE_MS);
      const began = Date.now();
      const ms = await askFront();
      if (number < 0) continue;
      const name = asleep.length > 1 ? "project" : asleep[0];
      add(`wake_${name}`, ms);
      add(`running_${name}`, Math.max(...(await Promise.all(asleep.map(resumedAt)))) - began);
    }
    console.error(`wakes ${number + WARM_UP + 1} of ${wakes + WARM_UP}`);
  }
  await three("down", "--volumes", "--yes");
} finally {
  const { apps } = await call("GET", "/apps").catch(() => ({ apps: [] }));
  for (const { name } of apps) await call("DELETE", `/apps/${name}?force=true`).catch(() => {});
  await platform.close();
}

const results = summaries(samples, 0);
console.table(results);
const medians = mapValues(samples, median);
const of = (/** @type {string} */ name) => medians[name] ?? Number.NaN;
const figures = {
  up_to_cold_starts: round(of("up") / (of("cold_starts") / CORES)),
  project_to_slowest_wake: round(of("wake_project") / Math.max(...TIERS.map((tier) => of(`wake_${tier}`)))),
};
const met = goalsMet(figures, GOALS);
if (!options.quick) writeResult("compose", { ...about, figures, results, samples });
process.exitCode = met ? 0 : 1;
