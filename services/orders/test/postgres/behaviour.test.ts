/**
 * @module-tag again
 */
// The suite for both variants, on a real PostgreSQL.
import { afterAll } from "vitest";
import { longOr } from "../../../../scripts/lib/long.mjs";
import { openPostgresStorage } from "../../src/postgres/index.ts";
import { describeStorage, type StorageWorld } from "../behaviour.ts";
import { ask, startTestServer } from "./server.ts";

const server = await startTestServer();
afterAll(() => server.remove());

async function open(): Promise<StorageWorld> {
  const access = await server.newDatabase();
  // Otherwise small tables are read completely, and the index for searches is never used.
  await ask(access, `ALTER DATABASE ${access.database} SET enable_seqscan = off`);
  const storage = await openPostgresStorage(access);
  return {
    storage,
    async insertOrder({ orderDate = "2024-02-29", shipCountry = "NO", lines = [] }) {
      const [order] = await ask(
        access,
        `INSERT INTO orders ("orderDate", "shipAddress", "shipCountry") VALUES ($1, 'Street 1', $2) RETURNING id`,
        [orderDate, shipCountry],
      );
      const id = order?.["id"] as number;
      const columns = [lines.map((line) => line.productId), lines.map((line) => line.quantity)];
      await ask(access, "INSERT INTO order_details SELECT $1, * FROM unnest($2::int[], $3::int[])", [id, ...columns]);
      return id;
    },
    execute: async (statement) => void (await ask(access, statement)),
    executeUnchecked: async (statement) =>
      void (await ask(access, `set session_replication_role = replica; ${statement}`)),
    dispose: async () => {
      await storage.close();
      await ask({ ...access, database: "postgres" }, `DROP DATABASE ${access.database} WITH (FORCE)`);
    },
  };
}

// A search takes a server ten times as long as the embedded databases, which are searched as often as ever.
describeStorage("postgres", { open, cascadesUpdates: true, searchRuns: longOr(60, 15) });
