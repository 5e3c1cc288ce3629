/** One burst of requests at one server. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { findTool, toolEnvironment } from "../../scripts/lib/test-tools.mjs";

/**
 * @typedef {{ rps: number, p50_ms: number, p99_ms: number, cpu_us: number }} Sample `cpu_us`: CPU per request
 *
 * @typedef {object} Load
 * @property {number} cpu the CPU that the load may use
 * @property {string} connections how many it keeps open
 * @property {number} seconds how long it takes
 */

/** @param {import("./servers.mjs").Server} server @param {Load} load @returns {Promise<Sample>} */
export async function burst(server, { cpu, connections, seconds }) {
  const args = ["-t1", `-c${connections}`, `-d${seconds}s`, "--latency", "-H", "Host: bench.localhost"];
  const cpuBefore = server.cpuMs();
  const load = spawn("taskset", ["-c", String(cpu), findTool("wrk"), ...args, `http://127.0.0.1:${server.port}/`], {
    stdio: ["ignore", "pipe", "inherit"],
    env: toolEnvironment(),
  });
  let text = "";
  load.stdout.on("data", (chunk) => (text += chunk));
  await once(load, "close");
  const cpuMs = server.cpuMs() - cpuBefore;
  const requests = Number(/(\d+) requests in/.exec(text)?.[1]);
  if (/Non-2xx|Socket errors/.test(text) || !(requests > 0)) throw new Error(`${server.name} failed.\n${text}`);
  const at = (/** @type {string} */ name) => milliseconds(new RegExp(`${name}\\s+([\\d.]+)(us|ms|s)`).exec(text));
  const rps = Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]);
  return { rps, p50_ms: at("50%"), p99_ms: at("99%"), cpu_us: (cpuMs * 1000) / requests };
}

/** @param {RegExpExecArray | null} match */
function milliseconds(match) {
  const factor = { us: 0.001, ms: 1, s: 1000 }[match?.[2] ?? ""] ?? Number.NaN;
  return Number(match?.[1]) * factor;
}
