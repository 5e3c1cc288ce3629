#!/usr/bin/env node
/**
 * `npm run bench:orders` measures how fast the orders service reads, compared with the least code that does the same
 * work. With the medium data set, on SQLite and PostgreSQL, it loads each endpoint of the service and of a bare
 * reference (`references/`) in turn. Prints medians and spread, records every sample in `bench/results/orders.json`,
 * and exits with code 1 if a goal is missed.
 */
import { parseArgs } from "node:util";
import { createProgress } from "../../scripts/lib/progress.mjs";
import { environment, writeResult } from "../lib/record.mjs";
import { mapValues } from "../lib/stats.mjs";
import { DATABASES } from "./databases.mjs";
import { ENDPOINTS, pathsOf } from "./endpoints.mjs";
import { burst, CONNECTIONS } from "./load.mjs";
import { GOAL, goalsMet, printResults, summarize } from "./report.mjs";
import { startReference, startService } from "./servers.mjs";

const USAGE = `npm run bench:orders -- [options]

  --quick          three short rounds for a first impression; records nothing
  --only VARIANT   sqlite or postgres; records nothing
  --rounds N       bursts at each server and endpoint (default: 7)
  --seconds N      length of a burst (default: 1.5)
`;
/** How many replies are compared before an endpoint is measured. */
const COMPARED = 50;
/** Length of the warm-up, in bursts: V8 needs many requests until it has compiled what runs often. */
const WARM_UP = 2;

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    help: { type: "boolean" },
  },
});
if (options.help) {
  process.stdout.write(USAGE);
  process.exit();
}
const rounds = Number(options.rounds ?? (options.quick ? 3 : 7));
const seconds = Number(options.seconds ?? (options.quick ? 0.5 : 1.5));
const variants = Object.keys(DATABASES).filter((variant) => variant === (options.only ?? variant));
if (!(rounds >= 1 && seconds > 0 && variants.length > 0)) {
  process.stderr.write(USAGE);
  process.exit(2);
}

/** @typedef {import("./servers.mjs").Server} Server */

/** Throws unless all servers reply with the same bytes. @param {Server[]} servers @param {string[]} paths */
async function compare(servers, paths) {
  for (const path of paths) {
    const replies = await Promise.all(servers.map(async ({ url }) => (await fetch(url + path)).text()));
    if (new Set(replies).size > 1) throw new Error(`The replies to ${path} differ:\n${replies.join("\n")}`);
  }
}

/**
 * Measures one endpoint. The server that goes first alternates between rounds.
 *
 * @param {{ service: Server, reference: Server }} servers
 * @param {import("./endpoints.mjs").Endpoint} endpoint
 */
async function measure({ service, reference }, endpoint) {
  await compare([service, reference], pathsOf(endpoint, 0, COMPARED));
  for (const server of [service, reference]) await burst(server, endpoint, WARM_UP * seconds);
  /** @type {import("./report.mjs").Round[]} */
  const samples = [];
  for (let round = 0; round < rounds; round++) {
    const early = round % 2 === 0 ? await burst(service, endpoint, seconds) : undefined;
    const measured = await burst(reference, endpoint, seconds);
    samples.push({ service: early ?? (await burst(service, endpoint, seconds)), reference: measured });
  }
  return samples;
}

/** @param {string} variant @param {ReturnType<typeof createProgress>} progress */
async function measureVariant(variant, progress) {
  const open = DATABASES[variant];
  if (!open) throw new Error(`"${variant}" is not a variant; use sqlite or postgres.`);
  const database = await progress.step(`${variant}: filling a database`, open);
  /** @type {Server[]} */
  const started = [];
  try {
    const service = await startService(database.env);
    started.push(service);
    const reference = await startReference(variant, database.env);
    started.push(reference);
    /** @type {Record<string, import("./report.mjs").Round[]>} */
    const samples = {};
    for (const endpoint of ENDPOINTS) {
      const work = () => measure({ service, reference }, endpoint);
      samples[endpoint.name] = await progress.step(`${variant}: ${endpoint.name}`, work);
    }
    const results = mapValues(samples, summarize);
    const memory_mb = { service: service.memoryMb(), reference: reference.memoryMb() };
    return { version: database.version, results, memory_mb, samples };
  } finally {
    await Promise.all(started.map((server) => server.stop()));
    await database.remove();
  }
}

// Temporary files are removed when the process exits by itself, which a signal alone would not let it do.
for (const [signal, code] of /** @type {const} */ ([
  ["SIGINT", 130],
  ["SIGTERM", 143],
]))
  process.once(signal, () => process.exit(code));

const about = environment();
const progress = createProgress(variants.length * (ENDPOINTS.length + 1));
/** @type {Record<string, Awaited<ReturnType<typeof measureVariant>>>} */
const measured = {};
for (const variant of variants) {
  const outcome = await measureVariant(variant, progress);
  measured[variant] = outcome;
  const { service, reference } = outcome.memory_mb;
  console.log(`\n${variant} ${outcome.version}: medians (least–most) of ${rounds} rounds; service : reference`);
  printResults(outcome.results);
  console.log(
    `memory: service ${service.rss} MB (peak ${service.peak}), reference ${reference.rss} MB (peak ${reference.peak})\n`,
  );
}
console.log(`goal: at least ${GOAL} of the reference's requests per second at every endpoint`);
if (!options.quick && !options.only) {
  const versions = mapValues(measured, ({ version }) => version);
  const load = { connections: CONNECTIONS, rounds, seconds };
  writeResult("orders", { ...about, ...versions, goal: GOAL, ...load, variants: measured });
}
process.exitCode = goalsMet(Object.values(measured).map(({ results }) => results)) ? 0 : 1;
