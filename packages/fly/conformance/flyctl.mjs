#!/usr/bin/env node
/** `npm run conformance:flyctl`: the program flyctl against a platform of our own. README.md says more. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { startOwnPlatform } from "../../../scripts/lib/own-platform.mjs";
import { setup } from "../../../scripts/setup.mjs";
import { flyEnvironment } from "../../cli/src/fly-environment.ts";
import { STORY } from "./flyctl-story.mjs";
import { conformanceImage } from "./image.mjs";

const HOST = "127.0.0.1";
/** Five minutes, in milliseconds: flyctl itself waits as long for a machine, which takes seconds to start under emulation. */
const COMMAND_MS = 5 * 60_000;
/** Nothing listens there. flyctl asks Fly about releases, incidents and features, and goes on without an answer. */
const NOWHERE = `http://${HOST}:9`;

const { values: options } = parseArgs({
  options: { flyctl: { type: "string", default: "flyctl" }, verbose: { type: "boolean", default: false } },
});
const folder = mkdtempSync(join(tmpdir(), "hibernaut-flyctl-"));
/** @type {Record<string, string>} */
let env = { PATH: process.env["PATH"] ?? "", HOME: folder, NO_COLOR: "1", HTTPS_PROXY: NOWHERE, HTTP_PROXY: NOWHERE };
/** @type {Awaited<ReturnType<typeof startOwnPlatform>> | undefined} */
let platform;
try {
  const version = await fly(["version"]);
  console.log(version.code === 0 ? version.said.trim() : skipped(version.said));
  if (version.code === 0) process.exitCode = await play();
} finally {
  await platform?.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Where the program cannot be had, that is no failure. @param {string} why */
function skipped(why) {
  return `skipped: ${options.flyctl} does not run here. Name one with --flyctl. ${why.trim().split("\n")[0]}`;
}

/** Starts a platform, and returns 1 if a step failed there. */
async function play() {
  await setup({ quiet: true });
  const image = await conformanceImage();
  const port = await freePort(HOST);
  platform = await startOwnPlatform({ HIBERNAUT_FLY_LISTEN: `${HOST}:${port}` }, (line) => console.error(line));
  // What `hibernaut fly env` prints has to be enough.
  env = { ...env, ...flyEnvironment({ flyListen: { host: HOST, port } }), FLY_API_TOKEN: platform.token };
  return (await tell({ image, proxyUrl: platform.proxyUrl ?? "" })) === 0 ? 0 : 1;
}

/**
 * Runs each step, prints it, and returns how many did not do what their users rely on.
 *
 * @param {{image: string, proxyUrl: string}} place
 */
async function tell({ image, proxyUrl }) {
  let failed = 0;
  /** @type {Record<string, string>} */
  const known = { image };
  for (const { run, says, holds, code = 0, visits } of STORY) {
    const began = performance.now();
    const words =
      run === undefined ? [] : run.map((word) => word.replace(/\{(\w+)\}/g, (_, name) => known[name] ?? name));
    const { code: ended, said } = run === undefined ? await visit(proxyUrl, visits ?? "") : await fly(words);
    const ok = ended === code && says.test(said) && said.includes(holds === undefined ? "" : (known[holds] ?? "?"));
    if (!ok) failed += 1;
    const ms = String(Math.round(performance.now() - began)).padStart(6);
    console.log(
      `${ok ? "pass" : "FAIL"} ${ms} ms  ${run === undefined ? `a request to ${visits}` : `fly ${words.join(" ")}`}`,
    );
    if (!ok || options.verbose) console.log(`${said.trimEnd()}\n(code ${ended})`.replace(/^/gm, "    "));
    // What a command named, later ones use.
    const found = says.exec(said)?.groups;
    if (ok && found !== undefined) Object.assign(known, found);
  }
  console.log(`${STORY.length - failed} of ${STORY.length} steps as they should be`);
  return failed;
}

/**
 * Runs flyctl without a terminal. What it says there and on standard error comes in one text.
 *
 * @param {string[]} words @returns {Promise<{code: number, said: string}>}
 */
function fly(words) {
  return new Promise((resolve) => {
    const settings = { env, timeout: COMMAND_MS, encoding: /** @type {const} */ ("utf8") };
    execFile(options.flyctl, words, settings, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code) || 1, said: out + err || (error?.message ?? "") }),
    );
  });
}

/** Asks the proxy for an app. @param {string} proxyUrl @param {string} app */
async function visit(proxyUrl, app) {
  const asked = request(proxyUrl, { headers: { host: `${app}.localhost` } }).end();
  /** @type {[import("node:http").IncomingMessage]} */
  const [response] = /** @type {any} */ (await once(asked, "response"));
  return { code: response.statusCode === 200 ? 0 : 1, said: await text(response) };
}
