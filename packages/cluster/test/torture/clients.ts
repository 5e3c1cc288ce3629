/** Clients of the apps: each request goes to any host's proxy, and every answer is noted. */
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { LabHost } from "../../../../scripts/lab/host.mjs";
import type { Lab } from "../../../../scripts/lab/lab.mjs";
import type { Faults } from "./faults.ts";

/** Longer than a proxy holds a request. */
const PATIENCE_MS = 90_000;
/** A client that got an error comes back a little later. */
const AFTER_ERROR_MS = 200;

/** What a request came to. `sent` says when, on the clock of `performance.now()`. */
export interface Reply {
  status: number;
  body: unknown;
}

export class Clients {
  /** How many requests ended with which code. */
  readonly errors: Record<string, number> = {};
  /** Errors that nobody has announced, with the beginning of what the client got. */
  readonly strange: string[] = [];
  answered = 0;
  readonly #lab: Lab;
  readonly #faults: Faults;
  readonly #expected: ReadonlySet<string>;

  constructor(lab: Lab, { faults, expected }: { faults: Faults; expected: ReadonlySet<string> }) {
    this.#lab = lab;
    this.#faults = faults;
    this.#expected = expected;
  }

  anyHost(): LabHost {
    return this.#lab.hosts[randomInt(this.#lab.hosts.length)] as LabHost;
  }

  /**
   * Resolves with what the app answered. Undefined when the proxy answered in its place, or nobody did: whether the app has
   * got the request is not known then.
   */
  async ask(app: string, path: string, json?: unknown): Promise<Reply | undefined> {
    const host = this.anyHost();
    const began = performance.now();
    try {
      const options = { timeoutMs: PATIENCE_MS, ...(json !== undefined && { json }) };
      const { status, text } = await this.#lab.ask(host, app, path, options);
      const body: unknown = JSON.parse(text);
      const { error } = body as { error?: string };
      if (error === undefined) {
        this.answered += 1;
        return { status, body };
      }
      this.#note(error, `${status} for ${path} at ${host.name}: ${text}`);
    } catch (error) {
      // A host that is down has no proxy, and one that is killed cuts off what is open.
      const known = this.#faults.befell(host, began);
      this.#note(known ? "proxy down" : "no answer", `${path} at ${host.name}: ${String(error)}`);
    }
    await delay(AFTER_ERROR_MS);
    return undefined;
  }

  #note(code: string, text: string): void {
    this.errors[code] = (this.errors[code] ?? 0) + 1;
    if (code !== "proxy down" && !this.#expected.has(code)) this.strange.push(`${code}: ${text.slice(0, 300)}`);
  }
}
