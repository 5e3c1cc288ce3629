/** What the programs of the torture share: whom they ask, what was killed, and what must never be seen twice. */
import { setTimeout as delay } from "node:timers/promises";
import type { ConnectionOpts } from "e2b";
import type { Random } from "../../power/random.ts";
import { Contradiction } from "./beliefs.ts";
import { flawOf, inFull } from "./errors.ts";
import type { Faults } from "./faults.ts";

/** A program that got an error tries something else a little later, in milliseconds. */
const AFTER_ERROR_MS = 200;
/** How many lines of the past are told with a fault. */
const MOST_LINES = 120;

interface WorldOptions {
  /** Of the program. */
  name: string;
  /** Ids of sandboxes, of boots, and random numbers, of all programs: each is seen once. */
  seen: Set<string>;
  options: ConnectionOpts;
  random: Random;
  faults: Faults;
}

export class World {
  readonly name: string;
  readonly options: ConnectionOpts;
  readonly random: Random;
  readonly faults: Faults;
  /** What cannot be. The first one ends the torture. */
  readonly trouble: string[] = [];
  readonly #seen: Set<string>;
  readonly #lines: string[] = [];
  /** How often each call was answered, and how often it failed as it may. */
  readonly answered: Record<string, number> = {};
  readonly failed: Record<string, number> = {};
  #serial = 0;

  constructor({ name, seen, options, random, faults }: WorldOptions) {
    this.name = name;
    this.#seen = seen;
    this.options = options;
    this.random = random;
    this.faults = faults;
  }

  /** A word that nobody else gets. */
  serial(): string {
    this.#serial += 1;
    return `${this.name}-${this.#serial}`;
  }

  say(line: string): void {
    this.#lines.push(`${(performance.now() / 1000).toFixed(2)} ${line}`);
    if (this.#lines.length > MOST_LINES) this.#lines.shift();
  }

  /** What happened last. */
  get past(): string {
    return this.#lines.join("\n");
  }

  wrong(text: string): void {
    this.say(`WRONG: ${text}`);
    this.trouble.push(text);
  }

  /** Notes what must be new. */
  unique(what: string): void {
    if (this.#seen.has(what)) this.wrong(`${what} was seen before`);
    this.#seen.add(what);
  }

  /**
   * Makes a call, and judges its error. Resolves with undefined when it failed as it may. `id`: the only sandbox whose
   * virtual machine it needs; a call that makes others needs any.
   */
  async attempt<T>(what: string, work: () => Promise<T>, id?: string): Promise<{ value: T } | undefined> {
    const name = what.split(" ")[0] ?? what;
    const began = performance.now();
    this.say(`${what} ${id ?? ""}`);
    try {
      const value = await work();
      this.say(`${what} ${id ?? ""}: ${JSON.stringify(value)?.slice(0, 80)}`);
      this.answered[name] = (this.answered[name] ?? 0) + 1;
      return { value };
    } catch (error) {
      this.say(`${what} ${id ?? ""}: ${inFull(error)}`);
      this.judge(`${what} ${id ?? ""}`, error, { began, id });
      this.failed[name] = (this.failed[name] ?? 0) + 1;
      await this.faults.back();
      await delay(AFTER_ERROR_MS);
      return undefined;
    }
  }

  judge(what: string, error: unknown, { began, id }: { began: number; id?: string | undefined }): void {
    const { faults } = this;
    const flaw = flawOf(error, { away: faults.away(began), disturbed: faults.disturbed(began, id) });
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    if (flaw !== undefined) this.wrong(`${what} failed after ${seconds} s: ${flaw}`);
  }

  /** Compares what is believed. Returns undefined for what cannot be. */
  believe<T>(what: string, work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof Contradiction)) throw error;
      this.wrong(`${what}: ${error.message}`);
      return undefined;
    }
  }
}
