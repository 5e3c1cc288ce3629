/** A new SQLite file for a test, deleted afterwards. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { openSqliteStorage } from "../src/sqlite/index.ts";
import type { StorageWorld, TestOrder } from "./behaviour.ts";

/** A temporary directory that deletes itself: `await using folder = await tempFolder()`. */
export async function tempFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "hibernaut-orders-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Opens a storage on a new file, and a second connection to it. */
export async function openSqliteWorld(): Promise<StorageWorld & { path: string }> {
  const folder = await tempFolder();
  const path = join(folder.path, "orders.db");
  const storage = await openSqliteStorage({ path });
  const beside = new Database(path);
  beside.pragma("foreign_keys = ON");
  return {
    path,
    storage,
    insertOrder: async (order) => insertOrder(beside, order),
    execute: async (statement) => void beside.exec(statement),
    executeUnchecked: async (statement) => {
      beside.pragma("foreign_keys = OFF");
      try {
        beside.exec(statement);
      } finally {
        beside.pragma("foreign_keys = ON");
      }
    },
    dispose: async () => {
      await storage.close();
      beside.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

function insertOrder(
  db: Database.Database,
  { orderDate = "2024-02-29", shipCountry = "c", lines = [] }: TestOrder,
): number {
  return db.transaction(() => {
    const order = db.prepare(`insert into orders ("orderDate", "shipAddress", "shipCountry") values (?, 'a', ?)`);
    const id = Number(order.run(orderDate, shipCountry).lastInsertRowid);
    const line = db.prepare("insert into order_details values (?, ?, ?)");
    for (const { productId, quantity } of lines) line.run(id, productId, quantity);
    return id;
  })();
}
