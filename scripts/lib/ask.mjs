/** Asks a machine's app over HTTP until it answers. */
import { get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { SetupError } from "./run.mjs";
import { slowed } from "./slow.mjs";

/** The emulated network accepts connections before the guest does, so the first request has to be repeated soon. */
const ASK_AGAIN_MS = 5;
const ONE_ANSWER_MS = slowed(10_000);
const ANSWER_DEADLINE_MS = slowed(120_000);

/**
 * Repeats a GET request until it succeeds, each time over a new connection. Rejects with a SetupError after two
 * minutes, or as many times that as this host is slow.
 *
 * @param {string} url
 * @returns {Promise<string>} The body of the answer.
 */
export async function askUntilAnswered(url) {
  const deadline = performance.now() + ANSWER_DEADLINE_MS;
  for (;;) {
    try {
      return await ask(url);
    } catch (error) {
      if (performance.now() > deadline) throw new SetupError(`${url} does not answer: ${String(error)}`);
      await delay(ASK_AGAIN_MS);
    }
  }
}

/**
 * @param {string} url
 * @returns {Promise<string>}
 */
function ask(url) {
  return new Promise((resolve, reject) => {
    // A connection that is kept open would not survive the machine's sleep.
    const request = get(url, { agent: false, signal: AbortSignal.timeout(ONE_ANSWER_MS) }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk) => {
        body += chunk;
      });
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode === 200) resolve(body);
        else reject(new Error(`status ${response.statusCode}: ${body.slice(0, 500)}`));
      });
    });
    request.on("error", reject);
  });
}
