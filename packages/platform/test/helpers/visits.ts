/** Requests to an app through the proxy, and what became of each. */
import { randomInt } from "node:crypto";
import { Agent } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Answer } from "./http.ts";
import { ask, type Target, wakeOf } from "./proxied.ts";

/** Every failure counts; these are told, which is enough to find the fault. */
const MOST_TOLD = 50;
/** Every how many visits something is written, which the proxy must never repeat. */
const WRITE_EVERY = 5;

/** How many requests there were, and what they found. */
export interface Tally {
  requests: number;
  failed: number;
  /** Why requests failed, with the time. */
  failures: string[];
  /** Requests by what `Hibernaut-Wake` says. */
  wakes: Record<string, number>;
}

/** The visitors of one app of the small app. Use from one place at a time. */
export class Visits {
  readonly tally: Tally = { requests: 0, failed: 0, failures: [], wakes: {} };
  /** How often each process answered that it counted a request, by nonce. */
  readonly counted = new Map<string, number>();
  /** What the app has acknowledged. */
  readonly written: string[] = [];
  readonly #target: () => Target;

  constructor(target: () => Target) {
    this.#target = target;
  }

  /** One after the other, with a pause of `pauseMs` (from, to) after each, until the signal aborts. */
  async come([from, to]: [number, number], until: AbortSignal): Promise<void> {
    const agent = new Agent({ keepAlive: true });
    try {
      for (let visit = 1; !until.aborted; visit += 1) {
        // Half of the clients keep their connection, as browsers do.
        const options = randomInt(2) === 0 ? { agent } : {};
        if (visit % WRITE_EVERY === 0) await this.#write(options);
        else await this.#count(options);
        await delay(randomInt(from, to + 1), undefined, { signal: until }).catch(() => {}); // aborted: the loop ends
      }
    } finally {
      agent.destroy();
    }
  }

  /** One after the other without a pause, each of which keeps a machine busy for `ms`, until the signal aborts. */
  async crowd(ms: number, until: AbortSignal): Promise<void> {
    while (!until.aborted) await this.#request(`/wait/${ms}`, {}, ({ text }) => text === "began ended");
  }

  async #count(options: { agent?: Agent }): Promise<void> {
    await this.#request("/", options, ({ text }) => {
      const { nonce } = JSON.parse(text) as { nonce: string };
      this.counted.set(nonce, (this.counted.get(nonce) ?? 0) + 1);
      return true;
    });
  }

  async #write(options: { agent?: Agent }): Promise<void> {
    const body = `note ${this.tally.requests + 1}`;
    const kept = ({ text }: Answer) => text === "kept";
    if (await this.#request("/layer", { ...options, method: "POST", body }, kept)) this.written.push(body);
  }

  async #request(
    path: string,
    options: Parameters<typeof ask>[2],
    isRight: (answer: Answer) => boolean,
  ): Promise<boolean> {
    this.tally.requests += 1;
    try {
      const answer = await ask(this.#target(), path, options);
      if (answer.status !== 200 || !isRight(answer)) throw new Error(`${answer.status} ${answer.text}`);
      const { kind } = wakeOf(answer);
      this.tally.wakes[kind] = (this.tally.wakes[kind] ?? 0) + 1;
      return true;
    } catch (error) {
      this.tally.failed += 1;
      const told = `${new Date().toISOString()} ${options?.method ?? "GET"} ${path}: ${String(error)}`;
      if (this.tally.failures.length < MOST_TOLD) this.tally.failures.push(told);
      return false;
    }
  }
}
