/** Loads a server for a moment and measures what it did. */
import autocannon from "autocannon";
import { pathsOf } from "./endpoints.mjs";

/** The same number as the service's connections to PostgreSQL. */
export const CONNECTIONS = 10;
/** Each connection requests this many different paths, over and over. */
const PATHS = 200;
/** How precisely a burst ends on time. */
const SAMPLE_MS = 50;

/**
 * @typedef {object} Burst
 * @property {number} rate Requests per second.
 * @property {number} cpu The server's CPU time per request, in microseconds, without the database's own processes.
 * @property {number} busy The share of the time in which the server's process ran. Near 1, it limits the rate.
 */

/**
 * Sends requests as fast as the server answers them. Rejects if any request fails or gets a status other than 2xx.
 *
 * @param {import("./servers.mjs").Server} server
 * @param {import("./endpoints.mjs").Endpoint} endpoint
 * @param {number} seconds
 * @returns {Promise<Burst>}
 */
export async function burst(server, endpoint, seconds) {
  let connection = 0;
  const options = {
    url: server.url,
    connections: CONNECTIONS,
    duration: seconds,
    sampleInt: SAMPLE_MS,
    setupClient: (/** @type {autocannon.Client} */ client) =>
      client.setRequests(pathsOf(endpoint, connection++, PATHS).map((path) => ({ path }))),
  };
  let began = 0;
  let cpuBefore = 0;
  const { requests, errors, non2xx } = await new Promise(
    (/** @type {(result: autocannon.Result) => void} */ resolve, reject) => {
      const run = autocannon(options, (error, result) =>
        error ? reject(/** @type {Error} */ (error)) : resolve(result),
      );
      // Not earlier, because autocannon builds all requests first.
      run.once("start", () => {
        began = performance.now();
        cpuBefore = server.cpuMs();
      });
    },
  );
  const elapsedMs = performance.now() - began;
  const cpuMs = server.cpuMs() - cpuBefore;
  if (errors + non2xx > 0) throw new Error(`${server.name}, ${endpoint.name}: ${errors + non2xx} requests failed.`);
  return {
    rate: Math.round((requests.total / elapsedMs) * 1000),
    cpu: Math.round((cpuMs / requests.total) * 10_000) / 10,
    busy: Math.round((cpuMs / elapsedMs) * 100) / 100,
  };
}
