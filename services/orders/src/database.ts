/** Which variant the settings ask for. PostgreSQL's is loaded only when it is used. */
import type { Seeder } from "./seed/contract.ts";
import type { Settings } from "./settings.ts";
import type { Storage } from "./storage.ts";

/**
 * Opens the database that the settings name, its tables up to date. `onFault` hears why connections were dropped, and
 * `onWait` what the start waits for when the database does not answer yet.
 */
export async function openStorage(
  settings: Settings,
  onFault: (error: unknown) => void,
  onWait = sayOnStderr,
): Promise<Storage> {
  if (settings.postgres) {
    const { openPostgresStorage } = await import("./postgres/index.ts");
    return openPostgresStorage({ ...settings.postgres, onFault, onWait });
  }
  const { openSqliteStorage } = await import("./sqlite/index.ts");
  return openSqliteStorage({ path: settings.sqlitePath });
}

/** Opens the same database to fill it. */
export async function openSeeder(settings: Settings): Promise<Seeder> {
  if (settings.postgres) {
    const { openPostgresSeeder } = await import("./postgres/seeder.ts");
    return openPostgresSeeder({ ...settings.postgres, onWait: sayOnStderr });
  }
  const { openSqliteSeeder } = await import("./sqlite/seeder.ts");
  return openSqliteSeeder({ path: settings.sqlitePath });
}

/** The database in words for a log, without its secrets. */
export function describeDatabase({ postgres, sqlitePath }: Settings): string {
  return postgres ? `PostgreSQL ${postgres.host}:${postgres.port}/${postgres.database}` : `SQLite ${sqlitePath}`;
}

/** Where all is said that comes before the service listens. */
function sayOnStderr(text: string): void {
  process.stderr.write(`${text}\n`);
}
