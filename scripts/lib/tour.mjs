/** The tour of `npm run up`: one real machine that starts, answers, sleeps and wakes. */
import { join } from "node:path";
import { ROOT } from "./node.mjs";
import { ask } from "./platform.mjs";
import { SetupError } from "./run.mjs";

const APP = "hibernaut-tour";
const PORT = 8080;
const WAIT_S = 120;

/**
 * What `npm run up -- --json` prints.
 *
 * @typedef {object} TourResult
 * @property {string} accelerator `kvm`, or `tcg` for software emulation.
 * @property {number} cold_start_ms From the request to start until the app's first answer.
 * @property {number} suspend_ms From the request to suspend until the snapshot is durable.
 * @property {number} resume_ms From the request to start until the app's first answer.
 * @property {boolean} resumed Same nonce, and the count went on: memory was kept.
 * @property {string} nonce
 * @property {number[]} counts
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
  const machine = await progress.step("make a machine from the demo image", () => {
    const config = { image: `oci:${join(ROOT, ".build/counter")}:latest`, services: [{ internal_port: PORT }] };
    return call("POST", `/apps/${APP}/machines`, { config, skip_launch: true });
  });
  const path = `/apps/${APP}/machines/${machine.machine_id}`;
  const address = machine.private_address;

  const cold = await progress.step("cold start: kernel, app, first answer", () => startAndAsk(call, path, address));
  const second = await ask(address, PORT);
  const suspendMs = await progress.step("suspend: memory to disk, no process left", async () => {
    const began = performance.now();
    await call("POST", `${path}/suspend`);
    await call("GET", `${path}/wait?state=suspended&timeout=${WAIT_S}`);
    return performance.now() - began;
  });
  const warm = await progress.step("resume: the same process answers", () => startAndAsk(call, path, address));
  return {
    accelerator: health.accelerator,
    cold_start_ms: Math.round(cold.ms),
    suspend_ms: Math.round(suspendMs),
    resume_ms: Math.round(warm.ms),
    resumed: warm.answer.nonce === cold.answer.nonce && warm.answer.count === second.count + 1,
    nonce: warm.answer.nonce,
    counts: [cold.answer.count, second.count, warm.answer.count],
    app: APP,
    machine_id: machine.machine_id,
    address: `${address}:${PORT}`,
  };
}

/**
 * Starts the machine and asks it at once; a start that fails says so instead of waiting.
 *
 * @param {import("./platform.mjs").Platform["call"]} call
 * @param {string} path
 * @param {string} address
 */
async function startAndAsk(call, path, address) {
  const began = performance.now();
  await call("POST", `${path}/start`);
  const state = (await call("GET", `${path}/wait?state=settled&timeout=${WAIT_S}`)).state;
  if (state !== "running") throw new SetupError(`The machine is ${state}: ${(await call("GET", path)).state_reason}`);
  const answer = await ask(address, PORT);
  return { answer, ms: performance.now() - began };
}

/**
 * Removes what an earlier tour left.
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
