/** Allows one platform per data directory: a second one would run every machine twice. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import Sqlite, { type Database } from "better-sqlite3";

/** In the data directory. */
export const LOCK_FILE = "platform.lock";

/** Keeps held locks reachable: garbage collection closes an unreachable database, which would release its lock. */
const held = new Set<Database>();

/** A held lock. */
interface DataDirLock {
  /** Releases the data directory. Safe to repeat. */
  release(): void;
}

/**
 * Locks the data directory for this process, and makes it when it does not exist. Throws `failed_precondition` when
 * another process has it.
 *
 * The lock is an open exclusive transaction on an empty SQLite file. The kernel releases it with the process, even after
 * kill -9, and the hypervisors that the process starts don't inherit it.
 */
export function lockDataDir(dataDir: string): DataDirLock {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const db = new Sqlite(join(dataDir, LOCK_FILE), { timeout: 0 });
  try {
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    throw (error as { code?: string }).code?.startsWith("SQLITE_BUSY") ? taken(dataDir) : error;
  }
  held.add(db);
  return {
    release() {
      held.delete(db);
      db.close();
    },
  };
}

function taken(dataDir: string): HibernautError {
  return new HibernautError(
    "failed_precondition",
    `Another platform is using the data directory ${dataDir}. Stop it, or set HIBERNAUT_DATA_DIR to another directory.`,
    { data_dir: dataDir },
  );
}
