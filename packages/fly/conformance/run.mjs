#!/usr/bin/env node
/** `npm run conformance:fly`: Fly's own Go client against a platform of our own. README.md says more. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { startOwnPlatform } from "../../../scripts/lib/own-platform.mjs";
import { setup } from "../../../scripts/setup.mjs";
import { buildProgram, missing } from "./build.mjs";
import { conformanceImage } from "./image.mjs";

const HOST = "127.0.0.1";
/** As wide as the longest name of a call, in characters, so that answers stand below each other. */
const WIDTH = 62;

const { values: options } = parseArgs({
  options: {
    source: { type: "string", multiple: true, default: [] },
    go: { type: "string", default: "go" },
    mode: { type: "string", default: "calls" },
    machines: { type: "string", default: "50" },
    awake: { type: "string", default: "4" },
    rounds: { type: "string", default: "3" },
    verbose: { type: "boolean", default: false },
  },
});
const sources = options.source.map((each) => resolve(each));
const problem = missing(sources, options.go);
if (problem !== undefined) {
  console.error(`${problem} packages/fly/conformance/README.md says where to get Go and the client.`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), "hibernaut-fly-"));
/** @type {Awaited<ReturnType<typeof startOwnPlatform>> | undefined} */
let platform;
try {
  const program = buildProgram(sources, options.go, folder);
  await setup({ quiet: true });
  const image = await conformanceImage();
  const port = await freePort(HOST);
  platform = await startOwnPlatform(
    // 50 machines are asleep but for a few; none may be refused for memory that the others would need.
    { HIBERNAUT_FLY_LISTEN: `${HOST}:${port}`, HIBERNAUT_MEMORY_OVERCOMMIT: "0" },
    (line) => console.error(line),
  );
  process.exitCode = await run(program, platform.ended, {
    FLY_FLAPS_BASE_URL: `http://${HOST}:${port}`,
    FLY_API_TOKEN: platform.token,
    HIBERNAUT_IMAGE: image,
    HIBERNAUT_PROXY_URL: platform.proxyUrl ?? "",
    HIBERNAUT_MACHINES: options.machines,
    HIBERNAUT_AWAKE: options.awake,
    HIBERNAUT_ROUNDS: options.rounds,
  });
} finally {
  await platform?.close();
  rmSync(folder, { recursive: true, force: true });
}

/**
 * Runs the program, prints its calls, and resolves with its exit code. If the platform ends, so does the program.
 *
 * @param {string} program @param {Promise<number>} platformEnded @param {Record<string, string>} settings
 */
async function run(program, platformEnded, settings) {
  const child = spawn(program, [options.mode], {
    env: { PATH: process.env["PATH"], HOME: folder, ...settings },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  void platformEnded.then(() => child.kill());
  for await (const text of createInterface({ input: child.stdout })) {
    const { name, ok, ms, detail } = JSON.parse(text);
    const said = ok && !options.verbose ? "" : `  ${String(detail).replaceAll("\n", " | ")}`;
    console.log(`${ok ? "pass" : "FAIL"} ${String(ms).padStart(6)} ms  ${name.padEnd(said === "" ? 0 : WIDTH)}${said}`);
  }
  const [code] = await ended;
  return code ?? 1;
}
