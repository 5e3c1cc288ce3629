/** Runs the platform as a child process and calls its API, for `npm run up` and the benches. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { nodeBinary, ROOT } from "./node.mjs";
import { SetupError } from "./run.mjs";
import { slowed } from "./slow.mjs";

/** The first start tests the accelerator with a boot. The whole start must not take longer than this. */
const START_DEADLINE_MS = slowed(60_000);
/** The platform finishes starts and suspends in progress. If it takes longer than this, it is killed. */
const STOP_DEADLINE_MS = slowed(60_000);

/**
 * @typedef {object} Platform
 * @property {string} apiUrl
 * @property {string | null} proxyUrl Where apps answer; null if the proxies run in separate processes.
 * @property {(method: string, path: string, body?: unknown) => Promise<any>} call Calls the API. Rejects with the
 *   error that the API returned.
 * @property {Promise<number>} ended Resolves with the exit code once the platform has ended.
 * @property {number} [pid] The process of the platform.
 * @property {() => Promise<void>} stop Ends the platform cleanly. Running machines keep running.
 */

/**
 * Starts `hibernaut serve` and waits until it is ready. If it does not start, rejects with a SetupError that says why.
 *
 * @param {object} [options]
 * @param {(line: string) => void} [options.say] Prints a line of the platform's log; to standard error by default.
 * @param {NodeJS.ProcessEnv} [options.env] With its settings; this process's by default.
 * @returns {Promise<Platform>}
 */
export async function startPlatform({
  say = (line) => void process.stderr.write(`${line}\n`),
  env = process.env,
} = {}) {
  // The platform writes to our pipe and cannot see that its log ends up on a terminal.
  const format = process.stderr.isTTY ? "text" : "auto";
  // A separate process group, so that Ctrl-C reaches only us and we can clean up step by step.
  const child = spawn(nodeBinary(), [join(ROOT, "packages/cli/bin/hibernaut.js"), "serve", "--json"], {
    cwd: ROOT,
    env: { HIBERNAUT_LOG_LEVEL: "warn", HIBERNAUT_LOG_FORMAT: format, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  /** @type {Promise<number>} */
  const ended = once(child, "close").then(([code]) => code ?? 1);
  createInterface({ input: child.stderr }).on("line", (line) => {
    // The same sentence is in the document on standard output, which we print.
    if (!line.startsWith("Error: ")) say(line);
  });
  const answer = await answerOf(child.stdout, ended).catch((error) => {
    child.kill("SIGTERM");
    throw error;
  });
  const { api_url: apiUrl, data_dir: dataDir, proxy_url: proxyUrl } = answer;
  const { api_token: token } = JSON.parse(readFileSync(join(dataDir, "config.json"), "utf8"));
  return {
    apiUrl,
    proxyUrl,
    ended,
    ...(child.pid !== undefined && { pid: child.pid }),
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
 * Resolves with the one-line document in which the platform says where it is listening. If the platform ends instead,
 * rejects with the reason, which it prints on several lines.
 *
 * @param {import("node:stream").Readable} stream
 * @param {Promise<number>} ended
 * @returns {Promise<{ api_url: string, proxy_url: string | null, data_dir: string }>}
 */
async function answerOf(stream, ended) {
  let text = "";
  const answer = new Promise((resolve) => {
    stream.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
      const document = /^\{.*\}\n/.exec(text)?.[0];
      if (document !== undefined) resolve(JSON.parse(document));
    });
  });
  const gone = ended.then((code) => Promise.reject(new SetupError(reasonIn(text, code))));
  const late = delay(START_DEADLINE_MS, undefined, { ref: false }).then(() =>
    Promise.reject(new SetupError(`The platform did not start within ${START_DEADLINE_MS / 1000} s.`)),
  );
  late.catch(() => {});
  gone.catch(() => {});
  return Promise.race([answer, gone, late]);
}

/**
 * Returns why the platform ended before it was ready.
 *
 * @param {string} text What the platform printed on standard output.
 * @param {number} code
 * @returns {string}
 */
function reasonIn(text, code) {
  try {
    return JSON.parse(text).message;
  } catch {
    return `The platform ended with code ${code} before it was ready. Run \`hibernaut serve\` to see why.`;
  }
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
