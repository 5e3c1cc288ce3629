/** The service and the reference, each in a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const ROOT = join(import.meta.dirname, "../..");
/** The kernel counts processor time in these. */
const TICK_MS = 10;

/**
 * @typedef {object} Server
 * @property {string} name
 * @property {string} url
 * @property {() => number} cpuMs Processor time of all its threads so far.
 * @property {() => { rss: number, peak: number }} memoryMb What it has in RAM, now and at most.
 * @property {() => Promise<void>} stop
 */

/**
 * Starts the service.
 *
 * @param {NodeJS.ProcessEnv} env Where its database is.
 */
export const startService = (env) => start("service", join(ROOT, "services/orders/src/main.ts"), env);

/**
 * Starts the reference for a kind of database.
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
    // Only the settings given: what a person's shell sets must not decide what is measured.
    env: { PATH: process.env.PATH, PORT: "0", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  const url = await Promise.race([address(child.stdout), exited.then(() => undefined)]);
  if (url === undefined) throw new Error(`The ${name} did not start.`);
  /** @param {string} file */
  const proc = (file) => readFileSync(`/proc/${child.pid}/${file}`, "utf8");
  return {
    name,
    url,
    cpuMs() {
      // The second field is the program's name in brackets, which may hold spaces.
      const fields = proc("stat").split(") ")[1]?.split(" ") ?? [];
      return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
    },
    memoryMb() {
      const status = proc("status");
      const megabytes = (/** @type {RegExp} */ line) => Math.round(Number(line.exec(status)?.[1]) / 1024);
      return { rss: megabytes(/VmRSS:\s+(\d+)/), peak: megabytes(/VmHWM:\s+(\d+)/) };
    },
    async stop() {
      child.kill("SIGTERM");
      await exited;
      process.removeListener("exit", kill);
    },
  };
}

/** Waits for the line that names it, and reads on, lest the pipe fill up. @param {import("node:stream").Readable} output */
function address(output) {
  return new Promise((/** @type {(url: string) => void} */ resolve) => {
    createInterface(output).on("line", (line) => {
      const [, url] = /"url":"(http[^"]+)"/.exec(line) ?? [];
      if (url !== undefined) resolve(url);
    });
  });
}
