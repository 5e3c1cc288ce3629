/** What became of a transaction whose COMMIT was sent and not answered. */
import { setTimeout as sleep } from "node:timers/promises";
import type { PoolClient } from "pg";
import type { Connections } from "./connections.ts";
import { sqlState } from "./faults.ts";

/** Enough to recognise a transaction on another connection. */
export interface Doubt {
  /** `pg_current_xact_id()`, taken inside the transaction. */
  xid: string;
  /** See {@link crashMark}. */
  crashMark: string;
}

/** `future`: the server has not given out this id yet. */
export type XactStatus = "committed" | "aborted" | "in progress" | "future" | null;
type Verdict = "committed" | "aborted" | "pending" | "unknown";

/** How long to ask. A server that restarts in order is back within it. */
const LIMIT_MS = 3000;
const PAUSE_MS = 50;
const IN_THE_FUTURE = "22023";

/**
 * What the server's answer means. After a crash, ids whose transactions had not reached the disk are given out again: then
 * "committed" may speak of somebody else, while every other answer says that ours is not there.
 */
export function verdictOn(status: XactStatus, crashedSince: boolean): Verdict {
  if (status === "aborted") return "aborted";
  if (crashedSince) return status === "in progress" || status === "future" ? "aborted" : "unknown";
  if (status === "committed") return "committed";
  return status === "in progress" ? "pending" : "unknown";
}

/**
 * A value that stays through an orderly restart and changes with every crash: PostgreSQL 15 and later throws its
 * statistics away then. Asked once for each connection, as none outlives a crash.
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

/** Asks until there is an answer, for a few seconds at most. Ends the session that still holds the transaction open. */
export async function settle(connections: Connections, doubt: Doubt): Promise<"committed" | "aborted" | "unknown"> {
  const limit = performance.now() + LIMIT_MS;
  for (;;) {
    // Whatever goes wrong here must not be taken for an answer.
    const verdict = await connections.use((client) => askAbout(client, doubt)).catch(() => "pending" as const);
    if (verdict !== "pending") return verdict;
    if (performance.now() > limit) return "unknown";
    await sleep(PAUSE_MS);
  }
}

async function askAbout(client: PoolClient, { xid, crashMark: before }: Doubt): Promise<Verdict> {
  const crashedSince = (await crashMark(client)) !== before;
  const verdict = verdictOn(await xactStatus(client, xid), crashedSince);
  // Its connection is lost, but it may not know: then nobody would ever end the transaction.
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
