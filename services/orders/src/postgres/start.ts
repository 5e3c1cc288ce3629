/** Makes the first connection. Service and database are often started together, and the database takes longer. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { DatabaseUnavailableError } from "../storage.ts";
import { faultOf } from "./faults.ts";
import { loginOf, type PostgresSettings, QUERY_TIMEOUT_MS } from "./settings.ts";

/** Wait between two attempts: short for people, and not a burden for a server that is starting. */
const PAUSE_MS = 250;

/**
 * Connects, and waits up to `startTimeoutMs` for a database that does not answer yet. A database that refuses, because of
 * a wrong password for instance, is not asked again, because waiting does not help. Rejects with a
 * {@link DatabaseUnavailableError} whose message explains why. The caller ends the client.
 */
export async function connectAtStart(settings: PostgresSettings, session: pg.ClientConfig): Promise<pg.Client> {
  const { host, port, queryTimeoutMs = QUERY_TIMEOUT_MS, startTimeoutMs = 0, onWait } = settings;
  const server = `PostgreSQL at ${host}:${port}`;
  const patience = `${startTimeoutMs / 1000} s`;
  const limit = performance.now() + startTimeoutMs;
  let said: string | undefined;
  for (;;) {
    // Without waiting there is one full attempt; otherwise the last attempt ends when the wait does.
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
  const client = new pg.Client({
    ...loginOf(settings),
    // For the driver, 0 means no limit.
    connectionTimeoutMillis: Math.max(1, Math.ceil(timeoutMs)),
    keepAlive: true,
    ...session,
  });
  // Running statements reject in any case.
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** Returns a message, also for a host with several addresses, whose error has only a code. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ("code" in error ? String(error.code) : error.name);
}
