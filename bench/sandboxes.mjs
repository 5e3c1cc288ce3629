#!/usr/bin/env node
/**
 * `npm run bench:sandboxes` measures sandboxes as a program sees them that uses E2B's client, with 256 MB each, on a platform
 * of its own:
 *
 * - a sandbox from a pool, against the wake of one that is kept warm; one without a pool, against an ordinary resume
 * - a command in a running sandbox, against a request to a server in the same sandbox
 * - a file, up and down
 * - many at once, each with one command, against one alone
 *
 * Prints medians and spread, records every sample in `bench/results/sandboxes.json`, and exits with code 1 if a goal is missed.
 */
import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import { parseArgs } from "node:util";
import { Sandbox } from "e2b";
import { sandboxImage } from "../packages/platform/test/helpers/sandbox-image.ts";
import { startOwnPlatform } from "../scripts/lib/own-platform.mjs";
import { createProgress } from "../scripts/lib/progress.mjs";
import { setup } from "../scripts/setup.mjs";
import { goalsMet } from "./lib/goals.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { median, round, summary } from "./lib/stats.mjs";

const MB = 1024 * 1024;
const POOL_TIMEOUT_MS = 60_000;
const GOALS = {
  pool_to_warm_p50: 1.5,
  create_to_resume_p50: 1.3,
  command_to_request_p50: 2,
  many_to_one: 1.5,
};

const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "15" }, quick: { type: "boolean", default: false } },
});
const rounds = options.quick ? 3 : Number(options.rounds);
const many = options.quick ? 6 : 50;
const fileMb = options.quick ? 5 : 100;

await setup({ quiet: true });
const image = await sandboxImage();
const about = environment();

/**
 * Does the work on a platform with a template, whose sandboxes stay warm that long when they are paused.
 *
 * @param {string} keepWarm @param {number} pool
 * @param {(platform: { call: any, client: any, url: string }) => Promise<void>} work
 */
async function onPlatform(keepWarm, pool, work) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const { call, close } = await startOwnPlatform({
    HIBERNAUT_SANDBOX_LISTEN: `127.0.0.1:${port}`,
    HIBERNAUT_KEEP_WARM: keepWarm,
    HIBERNAUT_MEMORY_OVERCOMMIT: "0",
  });
  try {
    await call("POST", "/apps", { app_name: "agents" });
    const { token } = await call("POST", "/tokens", { name: "bench", apps: ["agents"], e2b: true });
    const client = { apiKey: String(token), apiUrl: url, sandboxUrl: url, domain: "localhost", timeoutMs: 3_600_000 };
    const from = { image, guest: { memory_mb: 256 } };
    await call("POST", "/apps/agents/templates", { name: "base", from, warm_pool: pool });
    await work({ call, client, url });
  } finally {
    await close();
  }
}

/** @type {Record<string, number[]>} */
const samples = {};
const timed = async (/** @type {string} */ name, /** @type {() => Promise<any>} */ work) => {
  const began = performance.now();
  const result = await work();
  (samples[name] ??= []).push(round(performance.now() - began));
  return result;
};
const progress = createProgress(5);
await onPlatform("1h", 1, ({ call, client }) =>
  progress.step(`out of a pool, and awake again from warm sleep, ${rounds} rounds`, async () => {
    for (let number = 0; number < rounds; number += 1) {
      await poolReady(call);
      const pooled = await timed("pool", () => Sandbox.create(client));
      await pooled.pause();
      await timed("warm", () => Sandbox.connect(pooled.sandboxId, client));
      await pooled.kill();
    }
  }),
);
await onPlatform("0", 0, async ({ client, url }) => {
  await progress.step(`made, and resumed from a snapshot, ${rounds} rounds`, async () => {
    for (let number = 0; number < rounds; number += 1) {
      const made = await timed("create", () => Sandbox.create(client));
      await made.pause();
      await timed("resume", () => Sandbox.connect(made.sandboxId, client));
      await made.kill();
    }
  });
  await progress.step(`commands and requests, ${rounds} rounds`, async () => {
    const sandbox = await Sandbox.create(client);
    const server = 'require("http").createServer((q, r) => r.end()).listen(3000)';
    await sandbox.commands.run(`exec node -e '${server}'`, { background: true });
    const ask = async () => {
      const headers = { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "3000" };
      const reply = await fetch(url, { headers });
      await reply.arrayBuffer();
      return reply.status;
    };
    while ((await ask()) !== 200) await new Promise((resolve) => setTimeout(resolve, 200));
    for (let number = 0; number < rounds; number += 1) {
      await timed("request", ask);
      await timed("command", () => sandbox.commands.run("true"));
      await timed("list_files", () => sandbox.files.list("/"));
    }
    await sandbox.kill();
  });
  await progress.step(`a file of ${fileMb} MB`, async () => {
    const sandbox = await Sandbox.create(client);
    const bytes = randomBytes(fileMb * MB);
    await timed("upload", () => sandbox.files.write("big", new Blob([bytes]), { useOctetStream: true }));
    await timed("download", () => sandbox.files.read("big", { format: "bytes" }));
    await sandbox.kill();
  });
  await progress.step(`${many} at once`, async () => {
    const life = async () => {
      const sandbox = await Sandbox.create({ ...client, requestTimeoutMs: 600_000 });
      await sandbox.commands.run("true", { timeoutMs: 600_000, requestTimeoutMs: 600_000 });
      await sandbox.kill();
    };
    for (let number = 0; number < 3; number += 1) await timed("one_alone", life);
    const began = performance.now();
    await Promise.all(Array.from({ length: many }, life));
    samples.many_each = [round((performance.now() - began) / many)];
  });
});

const at = (/** @type {string} */ name) => median(samples[name] ?? []);
const figures = {
  pool_to_warm_p50: round(at("pool") / at("warm")),
  create_to_resume_p50: round(at("create") / at("resume")),
  command_to_request_p50: round(at("command") / at("request")),
  upload_mb_s: round(fileMb / (at("upload") / 1000)),
  download_mb_s: round(fileMb / (at("download") / 1000)),
  many_to_one: round(at("many_each") / at("one_alone")),
};
for (const [name, all] of Object.entries(samples)) {
  const { n, min, median: middle, p90, max } = summary(all);
  console.log(
    `${name.padEnd(12)} n, min, p50, p90, max: ${[n, min, middle, p90, max].map((value) => String(value).padStart(9)).join("")}`,
  );
}
console.log(JSON.stringify(figures));
const met = goalsMet(figures, GOALS);
if (!options.quick) writeResult("sandboxes", { ...about, figures, samples });
process.exitCode = met ? 0 : 1;

/** @param {any} call */
async function poolReady(call) {
  const until = performance.now() + POOL_TIMEOUT_MS;
  for (;;) {
    const { pool } = await call("GET", "/apps/agents/templates/base");
    if (pool.warm > 0) return;
    if (performance.now() > until) throw new Error("the pool was not filled");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
