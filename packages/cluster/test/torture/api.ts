/** What the torture asks of the API of a cluster's hosts. */
import { setTimeout as delay } from "node:timers/promises";
import type { LabHost } from "../../../../scripts/lab/host.mjs";

/** A little longer than the API lets anybody wait. */
const PATIENCE_MS = 310_000;
const LOOK_MS = 500;

/** What the API, or nobody, answered instead of doing it. */
export class Refused extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export class Api {
  readonly #token: string;

  /** The token of an administrator is the same on all hosts. */
  constructor(token: string) {
    this.#token = token;
  }

  /** Resolves with the answer, of which the last line counts. Rejects with {@link Refused}. */
  async call(host: LabHost, method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const what = `${method} ${path} at ${host.name}`;
    let text: string;
    try {
      const response = await fetch(`${host.apiUrl}/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      text = await response.text();
    } catch (error) {
      throw new Refused("no answer", `${what}: ${String(error)}`);
    }
    const answer = lastLine(text);
    if (answer === undefined) throw new Refused("cut off", `${what}: ${text.slice(-200)}`);
    const code = answer["error"];
    if (code !== undefined) throw new Refused(String(code), `${what}: ${String(answer["message"])}`);
    return answer;
  }

  /** The same, until it is answered. */
  async insist(host: LabHost, method: string, path: string, untilMs: number): Promise<Record<string, unknown>> {
    for (;;)
      try {
        return await this.call(host, method, path);
      } catch (error) {
        if (performance.now() > untilMs) throw error;
        await delay(LOOK_MS);
      }
  }
}

/** Work that takes a while answers with its progress, line by line. Undefined if the last line was cut off. */
function lastLine(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text.trim().split("\n").at(-1) || "{}") as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
