/** The first connection. Service and database are often started together, and the database takes longer. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { DatabaseUnavailableError } from "../storage.ts";
import { faultOf } from "./faults.ts";
import { type PostgresSettings, QUERY_TIMEOUT_MS } from "./settings.ts";

/** Between two attempts: soon enough for people, and no load for a server that is starting. */
const PAUSE_MS = 250;

/**
 * Connects, and waits up to `startTimeoutMs` for a database that does not answer yet. One that answers and refuses, for
 * the password or a database that does not exist, is not asked again: waiting does not change its mind. Rejects with a
 * {@link DatabaseUnavailableError} whose message tells people why. End the client when done.
 */
export async function connectAtStart(settings: PostgresSettings, session: pg.ClientConfig): Promise<pg.Client> {
  const { host, port, queryTimeoutMs = QUERY_TIMEOUT_MS, startTimeoutMs = 0, onWait } = settings;
  const server = `PostgreSQL at ${host}:${port}`;
  const patience = `${startTimeoutMs / 1000} s`;
  const limit = performance.now() + startTimeoutMs;
  let said: string | undefined;
  for (;;) {
    // Who does not wait has one whole attempt; else the last attempt ends with the waiting.
    const left = startTimeoutMs > 0 ? limit - performance.now() : queryTimeoutMs;
    try {
      return await connect(settings, session, Math.min(queryTimeoutMs, left));
    } catch (cause) {
      const why = reasonOf(cause);
      if (faultOf(cause) === undefined)
        throw new DatabaseUnavailableError(`${server} refuses the connection: ${why}`, { cause });
      if (performance.now() + PAUSE_MS >= limit) {
        const waited = startTimeoutMs > 0 ? `, also after ${patience}` : "";
        throw new DatabaseUnavailableError(`${server} does not answer${waited}: ${why}`, { cause });
      }
      if (why !== said) onWait?.(`Waiting up to ${patience} for ${server}: ${why}`);
      said = why;
    }
    await sleep(PAUSE_MS);
  }
}

async function connect(settings: PostgresSettings, session: pg.ClientConfig, timeoutMs: number): Promise<pg.Client> {
  const { host, port, user, password, database } = settings;
  const client = new pg.Client({
    ...{ host, port, user, password, database },
    // For the driver 0 is no limit at all.
    connectionTimeoutMillis: Math.max(1, Math.ceil(timeoutMs)),
    keepAlive: true,
    ...session,
  });
  // What is under way is rejected anyway.
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** A host with several addresses fails with an error that has a code and no words. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ("code" in error ? String(error.code) : error.name);
}
