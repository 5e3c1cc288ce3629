import { fileURLToPath } from "node:url";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import type { PostgresSettings } from "./settings.ts";
import { connectAtStart } from "./start.ts";

const FOLDER = fileURLToPath(new URL("../../migrations/postgres", import.meta.url));
/** Any number that is ours: whoever holds this lock migrates, the others wait. */
const LOCK = 4_827_190_553;
/** Another start may be at work on a large table. */
const LOCK_TIMEOUT_MS = 60_000;

/** Brings the tables up to date. Several starts at once are fine: one does it, and the others find it done. */
export async function migrateToLatest(settings: PostgresSettings): Promise<void> {
  const client = await connectAtStart(settings, {
    lock_timeout: LOCK_TIMEOUT_MS,
    application_name: "orders migration",
  });
  try {
    // Ends with the session.
    await client.query("SELECT pg_advisory_lock($1::bigint)", [LOCK]);
    await client.query("SET client_min_messages = warning");
    await migrate(drizzle({ client }), { migrationsFolder: FOLDER });
  } finally {
    await client.end();
  }
}
