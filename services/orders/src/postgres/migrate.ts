import { fileURLToPath } from "node:url";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import type { PostgresSettings } from "./settings.ts";
import { connectAtStart } from "./start.ts";

const FOLDER = fileURLToPath(new URL("../../migrations/postgres", import.meta.url));
/** An arbitrary number that only this service uses: the process with this lock migrates, and others wait. */
const LOCK = 4_827_190_553;
/** Another process may be migrating a large table. */
const LOCK_TIMEOUT_MS = 60_000;

/** Migrates the tables. When several processes start at once, one of them migrates and the others wait. */
export async function migrateToLatest(settings: PostgresSettings): Promise<void> {
  const client = await connectAtStart(settings, {
    lock_timeout: LOCK_TIMEOUT_MS,
    application_name: "orders migration",
  });
  try {
    // The lock ends with the session.
    await client.query("SELECT pg_advisory_lock($1::bigint)", [LOCK]);
    await client.query("SET client_min_messages = warning");
    await migrate(drizzle({ client }), { migrationsFolder: FOLDER });
  } finally {
    await client.end();
  }
}
