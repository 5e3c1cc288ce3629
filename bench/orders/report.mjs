/** The figures of a run, and whether they meet the goal. */
import { round, summary } from "../lib/stats.mjs";

/** The share of the reference's requests per second that the service must reach at every endpoint. */
export const GOAL = 0.8;

/**
 * @typedef {object} Round One burst at each server, one right after the other.
 * @property {import("./load.mjs").Burst} service
 * @property {import("./load.mjs").Burst} reference
 */

/**
 * Returns the figures of one endpoint. The ratio is taken round by round, because other load on the host changes slowly
 * and then slows both servers.
 *
 * @param {Round[]} rounds
 */
export function summarize(rounds) {
  const of = (/** @type {(round: Round) => number} */ value) => summary(rounds.map(value), 3);
  return {
    ratio: of(({ service, reference }) => round(service.rate / reference.rate, 3)),
    service_per_s: of(({ service }) => service.rate),
    reference_per_s: of(({ reference }) => reference.rate),
    service_cpu_us: of(({ service }) => service.cpu),
    reference_cpu_us: of(({ reference }) => reference.cpu),
    service_busy: of(({ service }) => service.busy),
    reference_busy: of(({ reference }) => reference.busy),
  };
}

/** @typedef {Record<string, ReturnType<typeof summarize>>} Results By the endpoint's name. */

/** @param {Results} results */
export function printResults(results) {
  const range = (/** @type {import("../lib/stats.mjs").Summary} */ { median, min, max }, digits = 0) =>
    `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
  const rows = Object.entries(results).map(([endpoint, figures]) => [
    endpoint,
    {
      "service/s": range(figures.service_per_s),
      "reference/s": range(figures.reference_per_s),
      ratio: range(figures.ratio, 2),
      "CPU µs": `${figures.service_cpu_us.median.toFixed(0)} : ${figures.reference_cpu_us.median.toFixed(0)}`,
      busy: `${figures.service_busy.median.toFixed(2)} : ${figures.reference_busy.median.toFixed(2)}`,
      goal: figures.ratio.median >= GOAL ? "met" : "MISSED",
    },
  ]);
  console.table(Object.fromEntries(rows));
}

/** Returns whether every endpoint meets the goal. @param {Results[]} all */
export function goalsMet(all) {
  return all.every((results) => Object.values(results).every(({ ratio }) => ratio.median >= GOAL));
}
