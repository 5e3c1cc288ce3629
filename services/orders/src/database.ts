/** Opens the variant that the settings select. PostgreSQL's is loaded only when it is used. */
import type { Seeder } from "./seed/contract.ts";
import type { Settings } from "./settings.ts";
import type { Storage } from "./storage.ts";

/**
 * Opens the database of the settings and migrates its tables. Calls `onFault` with the reason when connections are dropped,
 * and `onWait` with what the start is waiting for while the database does not answer yet.
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

/** Opens the same database for the seed. */
export async function openSeeder(settings: Settings): Promise<Seeder> {
  if (settings.postgres) {
    const { openPostgresSeeder } = await import("./postgres/seeder.ts");
    return openPostgresSeeder({ ...settings.postgres, onWait: sayOnStderr });
  }
  const { openSqliteSeeder } = await import("./sqlite/seeder.ts");
  return openSqliteSeeder({ path: settings.sqlitePath });
}

/** Describes the database for a log, without its password. */
export function describeDatabase({ postgres, sqlitePath }: Settings): string {
  return postgres ? `PostgreSQL ${postgres.host}:${postgres.port}/${postgres.database}` : `SQLite ${sqlitePath}`;
}

function sayOnStderr(text: string): void {
  process.stderr.write(`${text}\n`);
}
