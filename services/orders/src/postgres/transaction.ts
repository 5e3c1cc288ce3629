import type { PoolClient } from "pg";
import { DatabaseUnavailableError } from "../storage.ts";
import type { Connections } from "./connections.ts";
import { faultOf } from "./faults.ts";
import { retryOnce } from "./retry.ts";
import { crashMark, type Doubt, settle } from "./settle.ts";

/** What a transaction did. Without an id it changed nothing, and is undone. */
export interface Written<T> {
  result: T;
  xid: string | undefined;
}

/** COMMIT was sent, and then the connection died. Its cause tells how. */
class CommitInDoubtError extends Error {
  override name = "CommitInDoubtError";
  readonly doubt: Doubt;
  readonly result: unknown;

  constructor(doubt: Doubt, result: unknown, cause: unknown) {
    super("The answer to COMMIT was lost.", { cause });
    this.doubt = doubt;
    this.result = result;
  }
}

/** Runs the work in a transaction, at most twice, and has it done exactly once when this resolves. */
export function write<T>(connections: Connections, work: (client: PoolClient) => Promise<Written<T>>): Promise<T> {
  return retryOnce(async () => {
    try {
      return await connections.use((client) => inTransaction(client, work));
    } catch (error) {
      if (!(error instanceof CommitInDoubtError)) throw error;
      const outcome = await settle(connections, error.doubt);
      if (outcome === "committed") return error.result as T;
      if (outcome === "aborted") throw error;
      throw new DatabaseUnavailableError(
        "The connection was lost while saving: it is not known whether it was saved.",
        {
          cause: error,
        },
      );
    }
  });
}

async function inTransaction<T>(client: PoolClient, work: (client: PoolClient) => Promise<Written<T>>): Promise<T> {
  const mark = await crashMark(client);
  await client.query("BEGIN");
  let written: Written<T>;
  try {
    written = await work(client);
  } catch (error) {
    // With a fault the connection goes, and the transaction with it.
    if (faultOf(error) === undefined) await client.query("ROLLBACK");
    throw error;
  }
  const { result, xid } = written;
  if (xid === undefined) {
    await client.query("ROLLBACK");
    return result;
  }
  try {
    await client.query("COMMIT");
  } catch (error) {
    if (faultOf(error) === undefined) throw error;
    throw new CommitInDoubtError({ xid, crashMark: mark }, result, error);
  }
  return result;
}
