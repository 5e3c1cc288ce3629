/** Finds out what became of a transaction whose COMMIT was sent but not answered. */
import { setTimeout as sleep } from "node:timers/promises";
import type { PoolClient } from "pg";
import type { Connections } from "./connections.ts";
import { sqlState } from "./faults.ts";

/** Identifies a transaction on another connection. */
export interface Doubt {
  /** `pg_current_xact_id()`, taken inside the transaction. */
  xid: string;
  /** See {@link crashMark}. */
  crashMark: string;
}

/** `future` means that the server has not assigned this id yet. */
export type XactStatus = "committed" | "aborted" | "in progress" | "future" | null;
type Verdict = "committed" | "aborted" | "pending" | "unknown";

/** How long to ask. An orderly restart of the server takes less. */
const LIMIT_MS = 3000;
const PAUSE_MS = 50;
const IN_THE_FUTURE = "22023";

/**
 * Interprets the server's answer. After a crash, the server assigns ids again whose transactions had not reached the disk.
 * Then "committed" may be about another transaction, and every other answer means that ours was lost.
 */
export function verdictOn(status: XactStatus, crashedSince: boolean): Verdict {
  if (status === "aborted") return "aborted";
  if (crashedSince) return status === "in progress" || status === "future" ? "aborted" : "unknown";
  if (status === "committed") return "committed";
  return status === "in progress" ? "pending" : "unknown";
}

/**
 * Returns a value that survives an orderly restart and changes with every crash: PostgreSQL 15 and later discards its
 * statistics then. Read once for each connection, because none outlives a crash.
 */
export async function crashMark(client: PoolClient): Promise<string> {
  const known = marks.get(client);
  if (known !== undefined) return known;
  const { rows } = await client.query<{ mark: string | null }>(
    "SELECT pg_stat_get_bgwriter_stat_reset_time()::text AS mark",
  );
  const mark = rows[0]?.mark ?? "";
  marks.set(client, mark);
  return mark;
}
const marks = new WeakMap<PoolClient, string>();

/** Asks until there is an answer, for up to a few seconds. Ends a session that still has the transaction open. */
export async function settle(connections: Connections, doubt: Doubt): Promise<"committed" | "aborted" | "unknown"> {
  const limit = performance.now() + LIMIT_MS;
  for (;;) {
    // A failure here must not be mistaken for an answer.
    const verdict = await connections.use((client) => askAbout(client, doubt)).catch(() => "pending" as const);
    if (verdict !== "pending") return verdict;
    if (performance.now() > limit) return "unknown";
    await sleep(PAUSE_MS);
  }
}

async function askAbout(client: PoolClient, { xid, crashMark: before }: Doubt): Promise<Verdict> {
  const crashedSince = (await crashMark(client)) !== before;
  const verdict = verdictOn(await xactStatus(client, xid), crashedSince);
  // The session may not know that its connection is lost, and would never end the transaction.
  if (verdict === "pending")
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = $1::xid8::xid AND usename = current_user",
      [xid],
    );
  return verdict;
}

async function xactStatus(client: PoolClient, xid: string): Promise<XactStatus> {
  try {
    const { rows } = await client.query<{ status: XactStatus }>("SELECT pg_xact_status($1::xid8) AS status", [xid]);
    return rows[0]?.status ?? null;
  } catch (error) {
    if (sqlState(error) === IN_THE_FUTURE) return "future";
    throw error;
  }
}
