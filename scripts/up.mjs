#!/usr/bin/env node
/**
 * `npm run up`: sets up what is missing, starts the platform, and shows one real machine start, suspend and resume.
 * Plain JavaScript for Node 18 and later; the platform itself runs on the Node that the setup installs.
 */
import { parseArgs } from "node:util";
import { invitation } from "./lib/invitation.mjs";
import { startPlatform } from "./lib/platform.mjs";
import { createProgress } from "./lib/progress.mjs";
import { SetupError } from "./lib/run.mjs";
import { endTour, tour } from "./lib/tour.mjs";
import { setup } from "./setup.mjs";

const USAGE = `Usage: npm run up [-- --exit] [-- --json]

Set up this host, start the platform, and show a machine with the orders service start, suspend and resume.
The platform then stays in the foreground until you press Ctrl-C.

  --exit   exit after the tour
  --json   print the measurements as one JSON object, the last line of standard output
`;
const STEPS = 5;

/** @param {import("./lib/tour.mjs").TourResult} result */
function story(result) {
  const times = Math.round(result.cold_start_ms / result.resume_ms);
  const [before, after] = result.requests;
  const memory = result.resumed ? "kept: the same process" : "LOST: another process";
  return [
    "",
    `  accelerator  ${result.accelerator}`,
    `  cold start   ${result.cold_start_ms} ms  to the first answer`,
    `  suspend      ${result.suspend_ms} ms`,
    `  resume       ${result.resume_ms} ms  to the first answer (${times} times faster)`,
    `  search       ${result.found.length} products match "${result.search}": ${result.found.join(", ")}`,
    `  memory       ${memory}, searches it counted: ${before} before the sleep, ${after} after`,
    "",
    "",
  ].join("\n");
}

/** Settles at the first Ctrl-C or SIGTERM. */
function interruption() {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => resolve(signal));
  });
}

/** @param {{ exit?: boolean, json?: boolean }} options @returns {Promise<number>} The exit code. */
async function up({ exit = false, json = false }) {
  await setup({ quiet: true });
  const interrupted = interruption();
  // Quick steps are usually hidden. The quickest of these, the suspend, is the point of the tour.
  const progress = createProgress(STEPS, { everyStep: true });
  const platform = await progress.step("start the platform", startPlatform);
  try {
    const touring = tour(platform, progress).then((result) => ({ result }));
    const first = await Promise.race([touring, interrupted.then(() => ({ result: undefined }))]);
    if (first.result === undefined) return 130;
    process.stderr.write(story(first.result));
    if (json) process.stdout.write(`${JSON.stringify(first.result)}\n`);
    if (!exit) {
      process.stderr.write(invitation(first.result, platform));
      await Promise.race([interrupted, platform.ended]);
    }
    return first.result.resumed ? 0 : 1;
  } finally {
    await endTour(platform).catch((error) => process.stderr.write(`${error.message}\n`));
    await platform.stop();
  }
}

try {
  const { values } = parseArgs({
    options: { exit: { type: "boolean" }, json: { type: "boolean" }, help: { type: "boolean" } },
  });
  if (values.help) process.stdout.write(USAGE);
  else process.exitCode = await up(values);
} catch (error) {
  const usage = error instanceof TypeError && "code" in error;
  const expected = error instanceof SetupError || usage;
  const message = error instanceof Error ? (expected ? error.message : error.stack) : String(error);
  process.stderr.write(`${message}\n${usage ? USAGE : ""}`);
  process.exitCode = usage ? 2 : 1;
}
