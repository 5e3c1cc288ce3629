import type { PoolClient } from "pg";
import { DatabaseUnavailableError } from "../storage.ts";
import { CLOCKS, type Clocks, JumpWatch } from "./clock.ts";
import { CannotConnectError, faultOf } from "./faults.ts";
import { Generation } from "./generation.ts";
import { type PostgresSettings, proofTimeoutMs, QUERY_TIMEOUT_MS } from "./settings.ts";

/** A connection that was idle for longer has to prove that it is alive before it is used. */
const TRUST_MS = 3000;
/** The driver's message when all connections are in use: the database answers but is busy. */
const ALL_LENT = "timeout exceeded when trying to connect";
/** Callers with dead connections give up as late as callers that wait for them, so waiting again finds new ones. */
const QUEUE_TURNS = 2;

/**
 * Lends connections. When one fails, all connections of its generation are dropped: after a resume they died together,
 * and the next caller should not have to find out again.
 */
export class Connections {
  readonly #settings: PostgresSettings;
  readonly #clocks: Clocks;
  readonly #watch: JumpWatch;
  readonly #proof: { text: string; query_timeout: number };
  readonly #lastUsed = new WeakMap<PoolClient, number>();
  #current: Generation;
  #closed = false;

  constructor(settings: PostgresSettings) {
    this.#settings = settings;
    this.#clocks = settings.clocks ?? CLOCKS;
    this.#watch = new JumpWatch(this.#clocks);
    this.#proof = { text: "SELECT 1", query_timeout: proofTimeoutMs(settings.queryTimeoutMs ?? QUERY_TIMEOUT_MS) };
    this.#current = this.#next();
  }

  /** Lends a connection to `work`, which must not leave a transaction open unless it fails with a fault. */
  async use<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const { client, generation } = await this.#borrow();
    try {
      const result = await work(client);
      this.#giveBack(client);
      return result;
    } catch (error) {
      if (faultOf(error) === undefined) this.#giveBack(client);
      else {
        client.release(true);
        this.#drop(generation, error);
      }
      throw error;
    }
  }

  /** Closes all connections, after the work in progress. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#current.drop();
  }

  #giveBack(client: PoolClient): void {
    this.#lastUsed.set(client, this.#clocks.steady());
    client.release();
  }

  async #borrow(): Promise<{ client: PoolClient; generation: Generation }> {
    if (this.#watch.jumped()) this.#drop(this.#current, new Error("The clock jumped: the machine may have slept."));
    for (let queued = 1; ; ) {
      if (this.#closed) throw new DatabaseUnavailableError("The storage is closed.");
      const generation = this.#current;
      const client = await this.#connect(generation, queued < QUEUE_TURNS);
      if (client === "all lent") queued++;
      if (client === undefined || client === "all lent") continue;
      const lastUsed = this.#lastUsed.get(client);
      if (lastUsed === undefined || this.#clocks.steady() - lastUsed < TRUST_MS) return { client, generation };
      try {
        await client.query(this.#proof);
        return { client, generation };
      } catch (error) {
        client.release(true);
        this.#drop(generation, error);
      }
    }
  }

  /** Undefined when the generation was dropped and the next one has to be used. */
  async #connect(generation: Generation, patient: boolean): Promise<PoolClient | "all lent" | undefined> {
    try {
      return await generation.connect();
    } catch (error) {
      if (error instanceof Error && error.message === ALL_LENT) {
        if (patient) return "all lent";
        throw new DatabaseUnavailableError("All connections to the database are busy.", { cause: error });
      }
      this.#drop(generation, error);
      throw new CannotConnectError("The database cannot be reached.", { cause: error });
    }
  }

  /** Drops a generation, unless it was dropped already and there is a newer one. */
  #drop(generation: Generation, why: unknown): void {
    if (generation !== this.#current || this.#closed) return;
    this.#current = this.#next();
    this.#settings.onFault?.(why);
    generation.drop().catch((error: unknown) => this.#settings.onFault?.(error));
  }

  #next(): Generation {
    const generation: Generation = new Generation(this.#settings, (error) => this.#drop(generation, error));
    return generation;
  }
}
