/** The tour of `npm run up`: one real machine that starts, answers, is suspended, and resumes. */
import { join } from "node:path";
import { askUntilAnswered } from "./ask.mjs";
import { ROOT } from "./node.mjs";
import { SetupError } from "./run.mjs";
import { waitS } from "./slow.mjs";

const APP = "hibernaut-tour";
const IMAGE = join(ROOT, ".build/orders");
const PORT = 3000;
const WAIT_S = waitS(120);
/** Part of product names in the data set that the image is seeded with. */
const WORD = "tea";
/** The request that the tour sends to the service, and that `npm run up` invites you to send. */
export const SEARCH = `/products?name=${WORD}`;

/**
 * What `npm run up -- --json` prints.
 *
 * @typedef {object} TourResult
 * @property {string} accelerator `kvm`, or `tcg` for software emulation.
 * @property {number} cold_start_ms From the request to start until the app has answered its first search.
 * @property {number} suspend_ms From the request to suspend until the snapshot is durable.
 * @property {number} resume_ms From the request to start until the app has answered the same search.
 * @property {boolean} resumed Whether the answer is the same and the process continued counting: its memory was kept.
 * @property {string} search The word that was searched for.
 * @property {string[]} found The names of the products that were found.
 * @property {number[]} requests How many searches the process itself had counted, before the suspend and after it.
 * @property {string} app
 * @property {string} machine_id
 * @property {string} address
 */

/**
 * @param {import("./platform.mjs").Platform} platform
 * @param {import("./progress.mjs").Progress} progress
 * @returns {Promise<TourResult>}
 */
export async function tour(platform, progress) {
  const { call } = platform;
  const health = await call("GET", "/health");
  await endTour(platform);
  await call("POST", "/apps", { app_name: APP });
  const machine = await progress.step("make a machine from the orders image", () => {
    const config = { image: `oci:${IMAGE}:latest`, services: [{ internal_port: PORT }] };
    return call("POST", `/apps/${APP}/machines`, { config, skip_launch: true });
  });
  const path = `/apps/${APP}/machines/${machine.machine_id}`;
  const address = `${machine.private_address}:${PORT}`;

  const cold = await progress.step("cold start: kernel, app, first answer", () => startAndSearch(call, path, address));
  const before = await countedSearches(address);
  const suspendMs = await progress.step("suspend: memory to disk, no process left", async () => {
    const began = performance.now();
    await call("POST", `${path}/suspend`);
    await call("GET", `${path}/wait?state=suspended&timeout=${WAIT_S}`);
    return performance.now() - began;
  });
  const warm = await progress.step("resume: the same process answers", () => startAndSearch(call, path, address));
  const after = await countedSearches(address);
  return {
    accelerator: health.accelerator,
    cold_start_ms: Math.round(cold.ms),
    suspend_ms: Math.round(suspendMs),
    resume_ms: Math.round(warm.ms),
    // A new process would have counted only one search.
    resumed: warm.answer === cold.answer && after === before + 1,
    search: WORD,
    found: JSON.parse(warm.answer).items.map((/** @type {{ name: string }} */ { name }) => name),
    requests: [before, after],
    app: APP,
    machine_id: machine.machine_id,
    address,
  };
}

/**
 * Starts the machine and searches as soon as it is running. Rejects at once if the start fails.
 *
 * @param {import("./platform.mjs").Platform["call"]} call
 * @param {string} path
 * @param {string} address
 */
async function startAndSearch(call, path, address) {
  const began = performance.now();
  await call("POST", `${path}/start`);
  const state = (await call("GET", `${path}/wait?state=settled&timeout=${WAIT_S}`)).state;
  if (state !== "running") throw new SetupError(`The machine is ${state}: ${(await call("GET", path)).state_reason}`);
  const answer = await askUntilAnswered(`http://${address}${SEARCH}`);
  return { answer, ms: performance.now() - began };
}

/**
 * Returns how many searches the process has answered since it started, by its own count in memory.
 *
 * @param {string} address
 */
async function countedSearches(address) {
  const metrics = await askUntilAnswered(`http://${address}/metrics`);
  const counters = metrics.matchAll(/^orders_http_request_duration_seconds_count\{.*route="\/products".*\} (\d+)$/gm);
  return [...counters].reduce((sum, [, count]) => sum + Number(count), 0);
}

/**
 * Removes the app of an earlier tour, if there is one.
 *
 * @param {import("./platform.mjs").Platform} platform
 */
export async function endTour({ call }) {
  try {
    await call("DELETE", `/apps/${APP}?force=true`);
  } catch (error) {
    if (/** @type {{ code?: string }} */ (error).code !== "not_found") throw error;
  }
}
