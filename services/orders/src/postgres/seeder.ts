import { fold } from "../fold.ts";
import { SEED_TABLES, type Seeder, type SeedRows, type SeedTable } from "../seed/contract.ts";
import { migrateToLatest } from "./migrate.ts";
import type { PostgresSettings } from "./settings.ts";
import { connectAtStart } from "./start.ts";

/** A batch takes milliseconds, and VACUUM of everything takes seconds. */
const QUERY_TIMEOUT_MS = 120_000;
const WITH_SERIAL_ID: readonly SeedTable[] = ["suppliers", "products", "orders"];

/** Migrates the tables and starts the transaction of a {@link Seeder} for PostgreSQL. */
export async function openPostgresSeeder(settings: PostgresSettings): Promise<Seeder> {
  await migrateToLatest(settings);
  const session = { query_timeout: QUERY_TIMEOUT_MS, application_name: "orders seed" };
  const client = await connectAtStart(settings, session);
  await client.query("BEGIN");

  return {
    async isEmpty() {
      const anyOf = SEED_TABLES.map((table) => `EXISTS (SELECT FROM ${table})`).join(" OR ");
      const { rows } = await client.query<{ filled: boolean }>(`SELECT ${anyOf} AS filled`);
      return rows[0]?.filled === false;
    },

    async clear() {
      await client.query(`TRUNCATE ${SEED_TABLES.join(", ")}`);
    },

    async insert(table, rows) {
      await client.query({
        name: `seed ${table}`,
        text: `INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1)`,
        values: [JSON.stringify(rows.map((row) => stored(table, row)))],
      });
    },

    async commit() {
      for (const table of WITH_SERIAL_ID)
        await client.query(
          `SELECT setval(pg_get_serial_sequence('${table}', 'id'), coalesce(max(id), 1), max(id) IS NOT NULL) FROM ${table}`,
        );
      await client.query("COMMIT");
      // Also allows products to be counted with an index-only scan.
      await client.query(`VACUUM (ANALYZE) ${SEED_TABLES.join(", ")}`);
    },

    close: () => client.end(),
  };
}

/** Adds the column that only this variant has. */
function stored<T extends SeedTable>(table: T, row: SeedRows[T]): object {
  return table === "products" && "name" in row ? { ...row, foldedName: fold(row.name) } : row;
}
