import type { Clocks } from "./clock.ts";

/** Where the database is, and how long to believe in it. */
export interface PostgresSettings {
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** Connections at most. Default 10: more make PostgreSQL slower, not faster. */
  poolSize?: number;
  /**
   * A connection that gives no answer for so long is given up, and so is an attempt to connect. Default 2000. The server
   * is told to end a statement a little earlier, so that a slow one is not taken for a dead connection.
   */
  queryTimeoutMs?: number;
  /** How long the start waits for a database that does not answer yet. Default 0: one attempt. */
  startTimeoutMs?: number;
  /** Hears what the start waits for: once, and again when the reason changes. */
  onWait?: (why: string) => void;
  /** Hears why connections were dropped. */
  onFault?: (error: unknown) => void;
  /** For tests. */
  clocks?: Clocks;
}

export const POOL_SIZE = 10;
export const QUERY_TIMEOUT_MS = 2000;

/** Of the query time-out, what the server gets for a statement. */
const SERVER_SHARE = 0.9;
/** And what a connection gets to prove that it lives: it is asked for nothing, and a request waits. */
const PROOF_SHARE = 0.25;

/** Limits that the server keeps for us. A session left in a transaction holds locks: it must not outlive our patience. */
export function serverLimits(queryTimeoutMs: number) {
  return {
    statement_timeout: Math.round(queryTimeoutMs * SERVER_SHARE),
    idle_in_transaction_session_timeout: queryTimeoutMs,
  };
}

/** How long the proof of a connection may take, in milliseconds. */
export function proofTimeoutMs(queryTimeoutMs: number): number {
  return Math.round(queryTimeoutMs * PROOF_SHARE);
}
