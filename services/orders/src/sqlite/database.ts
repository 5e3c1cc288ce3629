/** Opens the file, migrates it, and sorts SQLite's errors. */
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { DatabaseUnavailableError } from "../storage.ts";

const MIGRATIONS = join(import.meta.dirname, "../../migrations/sqlite");

/** Waiting for another process's lock blocks this process, so this is only long enough for a write. */
const BUSY_TIMEOUT_MS = 1000;

/** Long enough for another process to make the same tables. */
const OPEN_ATTEMPTS = 5;
const OPEN_RETRY_MS = 100;

/** Opens the database at `path`, makes it when it does not exist, and migrates its tables. */
export async function openDatabase(path: string): Promise<Database.Database> {
  for (let attempt = 1; ; attempt++) {
    try {
      return openOnce(path);
    } catch (error) {
      // A process that loses the race to a new file finds it locked, or its tables made meanwhile.
      const lost = error instanceof Error && /locked|already exists/.test(`${error.message} ${String(error.cause)}`);
      if (!lost || attempt === OPEN_ATTEMPTS) throw error;
      await setTimeout(OPEN_RETRY_MS);
    }
  }
}

function openOnce(path: string): Database.Database {
  const client = new Database(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    client.pragma("journal_mode = WAL");
    // A commit that was answered survives a power cut. With WAL's default, the last ones could be lost.
    client.pragma("synchronous = FULL");
    client.pragma("foreign_keys = ON");
    migrate(drizzle({ client }), { migrationsFolder: MIGRATIONS });
    return client;
  } catch (error) {
    client.close();
    throw error;
  }
}

/** SQLite's codes for a file that is locked, full, missing, damaged or read-only. */
const UNAVAILABLE =
  /^SQLITE_(BUSY|LOCKED|IOERR|FULL|CANTOPEN|READONLY|CORRUPT|NOTADB|PERM|AUTH|NOMEM|PROTOCOL|INTERRUPT)/;

/** SQLite's codes for a broken reference. */
export const BROKEN_REFERENCE = "SQLITE_CONSTRAINT_FOREIGNKEY";

/** Returns SQLite's code of an error. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Database.SqliteError ? error.code : undefined;
}

/** Converts an error to one of the service's. `onBrokenReference` makes the error for a broken foreign key. */
export function translate(error: unknown, isOpen: boolean, onBrokenReference?: () => Error): Error {
  const code = codeOf(error);
  if (code === BROKEN_REFERENCE && onBrokenReference) return onBrokenReference();
  if (!isOpen || (code !== undefined && UNAVAILABLE.test(code))) {
    return new DatabaseUnavailableError(`the database does not answer (${code ?? "closed"})`, { cause: error });
  }
  return error instanceof Error ? error : new Error(String(error));
}
