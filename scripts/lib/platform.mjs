/** The platform as a child process, and its API, for `npm run up`. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { nodeBinary, ROOT } from "./node.mjs";
import { SetupError } from "./run.mjs";

/** The first start proves the accelerator by a boot; nothing in it may take longer than this. */
const START_DEADLINE_MS = 60_000;
/** Machines that are being started or suspended are waited for, then it is ended by force. */
const STOP_DEADLINE_MS = 60_000;
/** A machine's first request: the emulated network accepts before the guest does, so it is asked again soon. */
const ASK_AGAIN_MS = 5;
const ANSWER_DEADLINE_MS = 120_000;

/**
 * @typedef {object} Platform
 * @property {string} apiUrl
 * @property {(method: string, path: string, body?: unknown) => Promise<any>} call Calls the API; rejects with what it answered.
 * @property {Promise<number>} ended Its exit code, once it has ended.
 * @property {() => Promise<void>} stop Ends it cleanly; machines that run are left running.
 */

/**
 * Starts `hibernaut serve` and waits until it answers.
 *
 * @returns {Promise<Platform>}
 */
export async function startPlatform() {
  const env = { HIBERNAUT_LOG_LEVEL: "warn", ...process.env };
  // A group of its own: Ctrl-C at the terminal is ours to carry out, step by step.
  const child = spawn(nodeBinary(), [join(ROOT, "packages/cli/bin/hibernaut.js"), "serve", "--json"], {
    cwd: ROOT,
    env,
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  /** @type {Promise<number>} */
  const ended = once(child, "exit").then(([code]) => code ?? 1);
  const line = await firstLine(child.stdout, ended);
  const { api_url: apiUrl, data_dir: dataDir } = JSON.parse(line);
  const { api_token: token } = JSON.parse(readFileSync(join(dataDir, "config.json"), "utf8"));
  return {
    apiUrl,
    ended,
    call: (method, path, body) => call(`${apiUrl}/v1${path}`, token, method, body),
    stop: async () => {
      child.kill("SIGTERM");
      const late = setTimeout(() => child.kill("SIGKILL"), STOP_DEADLINE_MS);
      await ended;
      clearTimeout(late);
    },
  };
}

/**
 * @param {import("node:stream").Readable} stream
 * @param {Promise<number>} ended
 * @returns {Promise<string>}
 */
async function firstLine(stream, ended) {
  const line = new Promise((resolve) => {
    let text = "";
    stream.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
      if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
    });
  });
  const gone = ended.then(() => Promise.reject(new SetupError("The platform did not start; the reason is above.")));
  const late = delay(START_DEADLINE_MS, undefined, { ref: false }).then(() =>
    Promise.reject(new SetupError(`The platform did not start within ${START_DEADLINE_MS / 1000} s.`)),
  );
  late.catch(() => {});
  gone.catch(() => {});
  return Promise.race([line, gone, late]);
}

/**
 * @param {string} url
 * @param {string} token
 * @param {string} method
 * @param {unknown} body
 */
async function call(url, token, method, body) {
  /** @type {Record<string, string>} */
  const headers = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  const text = await response.text();
  const answer = text === "" ? undefined : JSON.parse(text);
  if (!response.ok)
    throw Object.assign(new SetupError(answer?.message ?? `${response.status} from ${url}`), { code: answer?.error });
  return answer;
}

/**
 * Asks a machine until it answers.
 *
 * @param {string} address
 * @param {number} port
 * @returns {Promise<any>} The JSON that it answered.
 */
export async function ask(address, port) {
  const deadline = Date.now() + ANSWER_DEADLINE_MS;
  for (;;) {
    try {
      return await askOnce(address, port);
    } catch (error) {
      if (Date.now() > deadline)
        throw new SetupError(`The machine does not answer at ${address}:${port}: ${String(error)}`);
      await delay(ASK_AGAIN_MS);
    }
  }
}

/** @param {string} host @param {number} port */
function askOnce(host, port) {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host, port, agent: false, timeout: 10_000 }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => resolve(JSON.parse(text)));
      response.on("error", reject);
    });
    request.on("timeout", () => request.destroy(new Error("no answer in time")));
    request.on("error", reject);
    request.end();
  });
}
