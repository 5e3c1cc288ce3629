#!/usr/bin/env node
/**
 * `npm run bench:fly` measures what the port for Fly's clients costs, on a platform of its own:
 *
 * - calls there, against the same ones at the platform's own API, in turns
 * - a list of 2,000 machines that were made through that port, against the same list at the API
 *
 * No machine is started. Prints medians and spread, records every sample in `bench/results/fly.json`, and exits with code 1 if a
 * goal is missed.
 */
import { once } from "node:events";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { freePort } from "../scripts/lib/free-port.mjs";
import { startOwnPlatform } from "../scripts/lib/own-platform.mjs";
import { createProgress } from "../scripts/lib/progress.mjs";
import { setup } from "../scripts/setup.mjs";
import { IMAGE } from "./lib/counter.mjs";
import { goalsMet } from "./lib/goals.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { median, round, summary } from "./lib/stats.mjs";

const GOALS = { more_per_call_ms: 1, list_ratio: 1.5 };
/** Machines that are made at once: enough to keep the platform busy. */
const AT_ONCE = 8;

const { values: options } = parseArgs({ options: { quick: { type: "boolean", default: false } } });
const machines = options.quick ? 200 : 2000;
const rounds = options.quick ? 50 : 500;
const lists = options.quick ? 5 : 25;

await setup({ quiet: true });
const about = environment();
const fly = `http://127.0.0.1:${await freePort()}`;
const { apiUrl, token, close } = await startOwnPlatform({
  HIBERNAUT_FLY_LISTEN: new URL(fly).host,
  // The rates of one token would be what is measured, and a bridge has some 1,000 addresses.
  HIBERNAUT_RATE_READS: "0",
  HIBERNAUT_RATE_CHANGES: "0",
  HIBERNAUT_NETWORK: "user",
});
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

/** @type {Record<string, number[]>} */
const samples = {};
const progress = createProgress(3);
try {
  await ask(fly, "POST", "/v1/apps", { app_name: "users" });
  const ids = await progress.step(`${machines} machines`, make);
  await progress.step(`${rounds} calls of each kind, in turns`, async () => {
    for (let number = 0; number < rounds; number += 1) {
      const at = `/v1/apps/users/machines/${ids[number % ids.length]}`;
      for (const [where, url] of [
        ["api", apiUrl],
        ["fly", fly],
      ]) {
        await timed(`${where}_metadata`, () => ask(String(url), "GET", `${at}/metadata`));
        await timed(`${where}_cordon`, () => ask(String(url), "POST", `${at}/cordon`));
      }
      // A machine is shown there with its history.
      await timed("api_show", () => ask(apiUrl, "GET", at));
      await timed("fly_show", () => ask(fly, "GET", at));
    }
  });
  await progress.step(`${lists} lists of all, in turns`, async () => {
    for (let number = 0; number < lists; number += 1)
      for (const [where, url] of [
        ["api", apiUrl],
        ["fly", fly],
      ])
        await timed(`${where}_list`, () => ask(String(url), "GET", "/v1/apps/users/machines"));
  });
} finally {
  agent.destroy();
  await close();
}

const at = (/** @type {string} */ name) => median(samples[name] ?? []);
const figures = {
  more_per_call_ms: round(Math.max(...["metadata", "cordon"].map((call) => at(`fly_${call}`) - at(`api_${call}`)))),
  more_to_show_ms: round(at("fly_show") - at("api_show")),
  list_ratio: round(at("fly_list") / at("api_list")),
};
for (const [name, all] of Object.entries(samples)) {
  const { n, min, median: middle, p90, max } = summary(all);
  const row = [n, min, middle, p90, max].map((value) => String(value).padStart(9)).join("");
  console.log(`${name.padEnd(14)} n, min, p50, p90, max: ${row}`);
}
console.log(JSON.stringify(figures));
const met = goalsMet(figures, GOALS);
if (!options.quick) writeResult("fly", { ...about, figures, samples });
process.exitCode = met ? 0 : 1;

/** Makes machines as a control plane does, and starts none. @returns {Promise<string[]>} */
async function make() {
  const guest = { cpu_kind: "shared", cpus: 1, memory_mb: 256 };
  const ports = [{ port: 443, handlers: ["tls", "http"] }];
  const services = [{ protocol: "tcp", internal_port: 8080, autostop: "suspend", autostart: true, ports }];
  const left = Array.from({ length: machines }, (_, number) => number);
  /** @type {string[]} */
  const ids = [];
  const worker = async () => {
    for (let user = left.pop(); user !== undefined; user = left.pop()) {
      const env = { USER_ID: String(user) };
      const config = { image: IMAGE, guest, services, env, metadata: { user: String(user) }, metrics: { port: 9091 } };
      const { id } = await ask(fly, "POST", "/v1/apps/users/machines", { config, skip_launch: true });
      ids.push(id);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return ids;
}

/** @param {string} name @param {() => Promise<unknown>} work */
async function timed(name, work) {
  const began = performance.now();
  await work();
  (samples[name] ??= []).push(round(performance.now() - began));
}

/**
 * Returns the reply, parsed. Rejects for a refusal.
 *
 * @param {string} url @param {string} method @param {string} path @param {object} [body] @returns {Promise<any>}
 */
async function ask(url, method, path, body) {
  const headers = { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) };
  const sent = request(`${url}${path}`, { method, agent, headers }).end(body && JSON.stringify(body));
  const [reply] = await once(sent, "response");
  const said = await text(reply);
  if (reply.statusCode >= 400) throw new Error(`${method} ${path}: ${reply.statusCode} ${said}`);
  return said === "" ? undefined : JSON.parse(said);
}
