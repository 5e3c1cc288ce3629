/** Writes rows into a PostgreSQL as fast as it takes them, whatever becomes of its connections, and knows which were acknowledged. */
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";

/** A busy host that emulates in software is slow; a connection to a machine that sleeps never answers. */
const ANSWER_MS = 5_000;
const RETRY_MS = 50;
const TEXT = "x".repeat(500);

export class Writer {
  readonly acknowledged: number[];
  /** Connections that were lost or refused. */
  broken = 0;
  readonly #host: string;
  readonly #end = new AbortController();
  readonly #done: Promise<void>;
  #tried: number;

  /** Continues with new rows after those of another writer. */
  constructor(host: string, before?: Writer) {
    this.#host = host;
    this.acknowledged = [...(before?.acknowledged ?? [])];
    this.#tried = before === undefined ? 0 : before.#tried;
    this.#done = this.#write();
  }

  /** Settles when this many more rows are acknowledged. */
  async more(count: number, deadlineMs = 180_000): Promise<void> {
    const wanted = this.acknowledged.length + count;
    const end = performance.now() + deadlineMs;
    while (this.acknowledged.length < wanted) {
      if (performance.now() > end) throw new Error(`only ${this.acknowledged.length} of ${wanted} rows were written`);
      await delay(RETRY_MS);
    }
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#done;
  }

  /** Acknowledged rows that are not there: empty, or something is lost. */
  async lost(): Promise<number[]> {
    // Before the look, because it keeps writing meanwhile.
    const acknowledged = [...this.acknowledged];
    const client = await this.#connect();
    try {
      const { rows } = await client.query<{ n: number }>("SELECT n FROM rows ORDER BY n");
      const there = new Set(rows.map(({ n }) => n));
      return acknowledged.filter((n) => !there.has(n));
    } finally {
      await client.end();
    }
  }

  async #connect(): Promise<pg.Client> {
    const access = { host: this.#host, port: 5432, user: "postgres", database: "postgres" };
    const client = new pg.Client({ ...access, connectionTimeoutMillis: ANSWER_MS, query_timeout: ANSWER_MS });
    client.on("error", () => {});
    await client.connect();
    return client;
  }

  async #write(): Promise<void> {
    while (!this.#end.signal.aborted) {
      let client: pg.Client | undefined;
      try {
        client = await this.#connect();
        await client.query("CREATE TABLE IF NOT EXISTS rows (n integer PRIMARY KEY, text text NOT NULL)");
        while (!this.#end.signal.aborted) {
          this.#tried += 1;
          const n = this.#tried;
          await client.query("INSERT INTO rows (n, text) VALUES ($1, $2)", [n, TEXT]);
          this.acknowledged.push(n);
        }
      } catch {
        this.broken += 1;
        await delay(RETRY_MS);
      } finally {
        void client?.end().catch(() => {});
      }
    }
  }
}
