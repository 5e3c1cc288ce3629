import type { PostgresSettings as ServiceSettings } from "../settings.ts";
import type { Clocks } from "./clock.ts";

/** Where the database is, and who connects. */
export type Login = Omit<ServiceSettings, "queryTimeoutMs" | "startTimeoutMs">;

/** The login, and the limits of its use. */
export interface PostgresSettings extends Login {
  /** Maximum number of connections. Default: 10, because more make PostgreSQL slower. */
  poolSize?: number;
  /**
   * Time limit for connecting and for each answer, after which the connection is dropped. Default: 2000. The server
   * ends a statement a little earlier, so that a slow statement is not mistaken for a dead connection.
   */
  queryTimeoutMs?: number;
  /** How long the start waits for a database that does not answer yet. Default: 0, which makes one attempt. */
  startTimeoutMs?: number;
  /** Called with what the start is waiting for, and again when the reason changes. */
  onWait?: (why: string) => void;
  /** Called with the reason when connections are dropped. */
  onFault?: (error: unknown) => void;
  /** Replaced in tests. */
  clocks?: Clocks;
}

/** Returns the login alone, as the driver takes it. */
export function loginOf({ host, port, user, password, database }: Login): Login {
  return { host, port, user, password, database };
}

export const POOL_SIZE = 10;
export const QUERY_TIMEOUT_MS = 2000;

/** The part of the query timeout after which the server ends a statement. */
const SERVER_SHARE = 0.9;
/** The part that a connection gets to prove that it is alive: the query is trivial, and a request is waiting. */
const PROOF_SHARE = 0.25;

/** Limits that the server enforces. A session that is left in a transaction holds locks, so it must end soon. */
export function serverLimits(queryTimeoutMs: number) {
  return {
    statement_timeout: Math.round(queryTimeoutMs * SERVER_SHARE),
    idle_in_transaction_session_timeout: queryTimeoutMs,
  };
}

/** Returns how long a connection may take to prove that it is alive, in milliseconds. */
export function proofTimeoutMs(queryTimeoutMs: number): number {
  return Math.round(queryTimeoutMs * PROOF_SHARE);
}
