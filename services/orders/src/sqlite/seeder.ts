/** Fills a SQLite database in one transaction, with statements that are prepared once. */

import { parsePrice } from "../decimal.ts";
import { fold } from "../fold.ts";
import { SEED_TABLES, type Seeder, type SeedRows, type SeedTable } from "../seed/contract.ts";
import { openDatabase } from "./database.ts";
import type { SqliteOptions } from "./index.ts";

/** How to turn a table's rows into parameters, in the order of its columns. */
const COLUMNS: { [T in SeedTable]: { names: string[]; values(row: SeedRows[T]): (string | number | null)[] } } = {
  suppliers: {
    names: ["id", "companyName", "city", "country"],
    values: (row) => [row.id, row.companyName, row.city, row.country],
  },
  products: {
    names: ["id", "name", "foldedName", "supplierId", "unitPrice", "unitsInStock"],
    values: (row) => [row.id, row.name, fold(row.name), row.supplierId, parsePrice(row.unitPrice), row.unitsInStock],
  },
  orders: {
    names: ["id", "orderDate", "shippedDate", "shipAddress", "shipPostalCode", "shipCountry"],
    values: (row) => [row.id, row.orderDate, row.shippedDate, row.shipAddress, row.shipPostalCode, row.shipCountry],
  },
  order_details: {
    names: ["orderId", "productId", "quantity"],
    values: (row) => [row.orderId, row.productId, row.quantity],
  },
};

/** Opens a database to fill it. No other process can write to it until the seeder is closed. */
export async function openSqliteSeeder({ path }: SqliteOptions): Promise<Seeder> {
  const client = await openDatabase(path);
  client.exec("begin immediate");
  const inserts = new Map(
    SEED_TABLES.map((table) => {
      const { names } = COLUMNS[table];
      const places = names.map(() => "?").join(", ");
      const columns = names.map((name) => `"${name}"`).join(", ");
      return [table, client.prepare(`insert into ${table} (${columns}) values (${places})`)] as const;
    }),
  );
  return {
    isEmpty: async () => SEED_TABLES.every((table) => client.prepare(`select 1 from ${table}`).get() === undefined),
    clear: async () => {
      for (const table of SEED_TABLES.toReversed()) client.exec(`delete from ${table}`);
    },
    insert: async (table, rows) => {
      const { values } = COLUMNS[table];
      for (const row of rows) inserts.get(table)?.run(...values(row));
    },
    commit: async () => {
      // New ids follow the highest one without help, because every insert updates the table of sequences.
      client.exec("commit; analyze; pragma wal_checkpoint(truncate)");
    },
    // Closing rolls back what was not committed.
    close: async () => void client.close(),
  };
}
