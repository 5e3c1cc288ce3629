/** Starts the service and the reference, each in a separate process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { cpuMs, memoryMb } from "../lib/processes.mjs";

const ROOT = join(import.meta.dirname, "../..");

/**
 * @typedef {object} Server
 * @property {string} name
 * @property {string} url
 * @property {() => number} cpuMs CPU time of all its threads so far, in milliseconds.
 * @property {() => { rss: number, peak: number }} memoryMb What it has in RAM, in MB: now, and at its peak.
 * @property {() => Promise<void>} stop
 */

/**
 * Starts the service.
 *
 * @param {NodeJS.ProcessEnv} env The settings that name its database.
 */
export const startService = (env) => start("service", join(ROOT, "services/orders/src/main.ts"), env);

/**
 * Starts the reference for one kind of database.
 *
 * @param {string} variant
 * @param {NodeJS.ProcessEnv} env
 */
export const startReference = (variant, env) =>
  start("reference", join(import.meta.dirname, `references/${variant}.mjs`), env);

/**
 * @param {string} name
 * @param {string} script
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Server>}
 */
async function start(name, script, env) {
  const child = spawn(process.execPath, [script], {
    // Only these settings: variables of your shell must not affect the measurement.
    env: { PATH: process.env.PATH, PORT: "0", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  const url = await Promise.race([address(child.stdout), exited.then(() => undefined)]);
  if (url === undefined) throw new Error(`The ${name} did not start.`);
  return {
    name,
    url,
    cpuMs: () => cpuMs(child.pid),
    memoryMb() {
      const { rss, peak } = memoryMb(child.pid);
      return { rss: Math.round(rss), peak: Math.round(peak) };
    },
    async stop() {
      child.kill("SIGTERM");
      await exited;
      process.removeListener("exit", kill);
    },
  };
}

/**
 * Waits for the line with the address. Keeps reading afterwards, so that the pipe does not fill up.
 *
 * @param {import("node:stream").Readable} output
 */
function address(output) {
  return new Promise((/** @type {(url: string) => void} */ resolve) => {
    createInterface(output).on("line", (line) => {
      const [, url] = /"url":"(http[^"]+)"/.exec(line) ?? [];
      if (url !== undefined) resolve(url);
    });
  });
}
