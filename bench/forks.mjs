#!/usr/bin/env node
/**
 * `npm run bench:forks` measures what a birth costs, with machines of 256 MB on a platform of its own:
 *
 * - from a request at the proxy to the first byte of the answer, for a machine that was just made from a template and has
 *   not run yet, and for one that resumes from its own snapshot; in turns
 * - the same for a machine out of a pool, and for one that is kept warm and has slept for a moment
 * - for how long the clients of a running machine wait while it is forked: the longest gap between two answers
 * - how long a machine takes to be made, alone and when many are made at once
 * - what sleeping machines from one template take of the disk, and running ones of memory in no file
 * - an app of one machine that grows to ten: by machines from a template, and by cold starts
 *
 * Prints medians and spread, records every sample in `bench/results/forks.json`, and exits with code 1 if a goal is missed.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startOwnPlatform } from "../scripts/lib/own-platform.mjs";
import { createProgress } from "../scripts/lib/progress.mjs";
import { setup } from "../scripts/setup.mjs";
import { createCounter } from "./lib/counter.mjs";
import { goalsMet } from "./lib/goals.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { mapValues, median, percentile, round, summary } from "./lib/stats.mjs";
import { ask, now } from "./proxy/wake-request.mjs";

const WARM_UP = 3;
/** By then, an app that was just woken has finished what it had to do. */
const SETTLE_MS = 300;
/** Between two requests of the client that watches a fork. */
const WATCH_MS = 5;
const BLOCK = 512;
const MB = 1024 * 1024;
const GROWN = 10;

const GOALS = {
  born_to_resume_p50: 1.15,
  pool_to_warm_p50: 1.3,
  pause_p50_ms: 100,
  pause_p99_ms: 250,
  many_to_one_made: 1.3,
  anonymous_mb_beyond_qemu: 25,
  disk_mb: 10,
};
const LEAST = { cold_to_template_tenth: 10 };

const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "30" }, quick: { type: "boolean", default: false } },
});
const rounds = options.quick ? 5 : Number(options.rounds);
const many = options.quick ? 10 : 100;

await setup({ quiet: true });
const about = environment();
const { call, dataDir, port, close } = await startOwnPlatform({
  HIBERNAUT_KEEP_WARM: "0",
  HIBERNAUT_MEMORY_OVERCOMMIT: "0",
});
const pathOf = (/** @type {string} */ app, /** @type {string} */ id) => `/apps/${app}/machines/${id}`;
const request = (/** @type {string} */ app, /** @type {string} */ id) =>
  ask({ host: "127.0.0.1", port, name: `${id}.${app}.localhost` });

/** @param {string} app @param {object} [more] @returns {Promise<{ id: string, address: string }>} */
async function born(app, more = {}) {
  const made = await call("POST", `/apps/${app}/machines`, { template: "ready", skip_launch: true, ...more });
  return { id: String(made.machine_id), address: String(made.private_address) };
}

/** The files in a directory, by inode: one with several names is one. @param {string} root */
function filesIn(root) {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    entries.map(({ parentPath, name }) => {
      const { ino, blocks } = statSync(join(parentPath, name));
      return [ino, blocks * BLOCK];
    }),
  );
}

/** What a sleeping machine's files take on the disk, in MB, without those that are a template's, too. @param {string} id */
function diskMb(id) {
  const ofTemplates = filesIn(join(dataDir, "templates"));
  const own = [...filesIn(join(dataDir, "machines", id))].filter(([inode]) => !ofTemplates.has(inode));
  return own.reduce((sum, [, bytes]) => sum + bytes, 0) / MB;
}

/** What a running machine's VMM has in memory that is in no file, in MB. @param {string} id */
function anonymousMb(id) {
  // The jail's launcher has the same name, and little memory.
  const pids = execFileSync("pgrep", ["-f", `hibernaut-${id}`], { encoding: "utf8" })
    .trim()
    .split("\n");
  const sizes = pids.map((pid) => /^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
  return Math.max(...sizes.map(Number)) / 1024;
}

/** @type {Record<string, number[]>} */
const samples = mapValues(
  {
    ...{ resume: 0, born: 0, warm: 0, pool: 0, pool_taken: 0, pause: 0, made_alone: 0, made_many: 0, disk_mb: 0 },
    ...{ anonymous_mb: 0, anonymous_own_mb: 0 },
    ...{ grown_template: 0, grown_cold: 0 },
  },
  () => [],
);
const keep = (/** @type {string} */ name, /** @type {number} */ value) => samples[name]?.push(round(value));
const timed = async (/** @type {() => Promise<unknown>} */ work) => {
  const began = now();
  await work();
  return now() - began;
};
const progress = createProgress(5);
try {
  await call("POST", "/apps", { app_name: "shop" });
  const parent = await createCounter(call, "shop", { service: { machine_hostnames: true } });
  await request("shop", parent.id);
  await call("POST", "/apps/shop/templates", { from: parent.id, name: "ready" });

  await progress.step(`first requests, ${rounds} rounds`, async (step) => {
    for (let number = -WARM_UP; number < rounds; number += 1) {
      const one = await born("shop");
      const path = pathOf("shop", one.id);
      for (const kind of ["born", "resume"]) {
        await delay(SETTLE_MS);
        const { began, firstByte, wake } = await request("shop", one.id);
        if (!wake.startsWith("resume;")) throw new Error(`A ${kind} request was answered with "${wake}".`);
        if (number >= 0) keep(kind, firstByte - began);
        if (number >= 0) keep(kind === "born" ? "anonymous_mb" : "anonymous_own_mb", anonymousMb(one.id));
        await delay(SETTLE_MS);
        await call("POST", `${path}/suspend`);
        await call("GET", `${path}/wait?state=suspended`);
      }
      await call("DELETE", path);
      step.detail(`${number + WARM_UP + 1} of ${rounds + WARM_UP}`);
    }
  });

  await progress.step(`machines out of a pool, ${rounds} rounds`, async (step) => {
    await call("POST", "/apps", { app_name: "pool" });
    const first = await createCounter(call, "pool", {
      service: { machine_hostnames: true, keep_warm: 600 },
      checks: { web: { type: "http", path: "/" } },
    });
    await request("pool", first.id);
    await call("POST", "/apps/pool/templates", { from: first.id, name: "ready", warm_pool: 1 });
    await call("DELETE", `${first.path}?force=true`);
    for (let number = -WARM_UP; number < rounds; number += 1) {
      await poolIsFull("pool");
      const began = now();
      const one = await born("pool");
      const taken = now() - began;
      const path = pathOf("pool", one.id);
      for (const kind of ["pool", "warm"]) {
        // Another machine is made for the pool meanwhile, which would take the CPUs.
        if (kind === "warm") await poolIsFull("pool");
        await delay(SETTLE_MS);
        const answer = await request("pool", one.id);
        if (!answer.wake.startsWith("warm;")) throw new Error(`A ${kind} request was answered with "${answer.wake}".`);
        if (number >= 0) keep(kind, answer.firstByte - answer.began);
        await delay(SETTLE_MS);
        await call("POST", `${path}/suspend`);
        await call("GET", `${path}/wait?state=suspended`);
      }
      if (number >= 0) keep("pool_taken", taken);
      await call("DELETE", path);
      step.detail(`${number + WARM_UP + 1} of ${rounds + WARM_UP}`);
    }
    await call("DELETE", "/apps/pool?force=true");
  });

  await progress.step(`forks of a running machine, ${rounds} rounds`, async (step) => {
    for (let number = 0; number < rounds; number += 1) {
      const gaps = watch("shop", parent.id);
      await delay(SETTLE_MS);
      const [fork] = await call("POST", `${parent.path}/fork`, { skip_launch: true });
      await delay(SETTLE_MS);
      keep("pause", await gaps());
      await call("DELETE", pathOf("shop", String(fork.machine_id)));
      step.detail(`${number + 1} of ${rounds}`);
    }
  });

  await progress.step(`${many} machines at once`, async () => {
    for (let number = 0; number < 10; number += 1) {
      keep("made_alone", await timed(async () => keep("disk_mb", diskMb((await born("shop")).id))));
    }
    const took = await timed(() => Promise.all(Array.from({ length: many }, () => born("shop"))));
    keep("made_many", took / many);
    const ids = (await call("GET", "/apps/shop/machines")).map((/** @type {{ id: string }} */ { id }) => id);
    for (const id of ids.filter((/** @type {string} */ each) => each !== parent.id))
      await call("DELETE", pathOf("shop", id));
  });

  await progress.step(`one machine to ${GROWN}`, async () => {
    for (const kind of ["template", "cold"]) {
      const grow = async () => {
        const body = kind === "template" ? { template: "ready" } : { config: parent.config };
        const made = await Promise.all(
          Array.from({ length: GROWN - 1 }, () => call("POST", "/apps/shop/machines", body)),
        );
        await Promise.all(
          made.map(async ({ machine_id: id }) => {
            await call("GET", `${pathOf("shop", String(id))}/wait?timeout=300`);
            await request("shop", String(id));
          }),
        );
        return made;
      };
      /** @type {{ machine_id: string }[]} */
      let made = [];
      keep(`grown_${kind}`, await timed(async () => (made = await grow())));
      for (const { machine_id: id } of made) await call("DELETE", `${pathOf("shop", id)}?force=true`);
    }
  });
} finally {
  await call("DELETE", "/apps/shop?force=true").catch(() => {});
  await close();
}

/** Waits until a machine can be taken out of the pool, and none is being made. @param {string} app */
async function poolIsFull(app) {
  for (const end = now() + 60_000; ; await delay(100)) {
    const { pool } = await call("GET", `/apps/${app}/templates/ready`);
    if (pool.warm === pool.size) return;
    if (pool.reason !== null || now() > end) throw new Error(`The pool is not full: ${JSON.stringify(pool)}`);
  }
}

/** Asks again and again. Returns how to end that, which resolves with the longest time between two answers. @param {string} app @param {string} id */
function watch(app, id) {
  const over = new AbortController();
  const watching = (async () => {
    let longest = 0;
    for (let last = now(); !over.signal.aborted; last = now()) {
      await request(app, id);
      await delay(WATCH_MS);
      longest = Math.max(longest, now() - last);
    }
    return longest - WATCH_MS;
  })();
  return () => {
    over.abort();
    return watching;
  };
}

const at = (/** @type {string} */ name) => samples[name] ?? [];
const figures = {
  born_to_resume_p50: round(median(at("born")) / median(at("resume"))),
  pool_to_warm_p50: round(median(at("pool")) / median(at("warm"))),
  pause_p50_ms: median(at("pause")),
  pause_p99_ms: percentile(at("pause"), 0.99),
  many_to_one_made: round(median(at("made_many")) / median(at("made_alone"))),
  anonymous_mb_beyond_qemu: round(median(at("anonymous_mb")) - median(at("anonymous_own_mb"))),
  disk_mb: median(at("disk_mb")),
  cold_to_template_tenth: round(median(at("grown_cold")) / median(at("grown_template"))),
};
for (const [name, all] of Object.entries(samples)) {
  const { n, min, median: middle, p90, max } = summary(all);
  console.log(
    `${name.padEnd(16)} n, min, p50, p90, max: ${[n, min, middle, p90, max].map((value) => String(value).padStart(9)).join("")}`,
  );
}
const met = goalsMet(figures, GOALS, LEAST);
if (!options.quick) writeResult("forks", { ...about, figures, samples });
process.exitCode = met ? 0 : 1;
