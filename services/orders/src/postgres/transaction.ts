import type { PoolClient } from "pg";
import { DatabaseUnavailableError } from "../storage.ts";
import type { Connections } from "./connections.ts";
import { faultOf } from "./faults.ts";
import { retryOnce } from "./retry.ts";
import { crashMark, type Doubt, settle } from "./settle.ts";

/** The result of a transaction. One without an id changed nothing and is rolled back. */
export interface Written<T> {
  result: T;
  xid: string | undefined;
}

/** The connection died after COMMIT was sent. The cause says how. */
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

/** Runs the work in a transaction, up to twice. When this resolves, the work was done exactly once. */
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
    // After a fault the connection is dropped, and the transaction with it.
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
