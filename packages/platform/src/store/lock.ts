/** One platform per data folder: a second one would run every machine twice. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import Sqlite, { type Database } from "better-sqlite3";
import { HibernautError } from "../domain/errors.ts";

/** Keeps held locks reachable: the garbage collector closes a database that nobody points at, and so lets go. */
const held = new Set<Database>();

/** A held lock. */
interface DataDirLock {
  /** Lets another platform have the folder. Safe to repeat. */
  release(): void;
}

/**
 * Takes the data folder for this process; makes the folder when absent. Throws
 * `failed_precondition` when another process has it.
 *
 * The lock is an open exclusive transaction on an empty SQLite file: a lock of the kernel's, gone
 * with the process even after kill -9, and not inherited by the hypervisors it starts.
 */
export function lockDataDir(dataDir: string): DataDirLock {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const db = new Sqlite(join(dataDir, "platform.lock"), { timeout: 0 });
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
    `Another platform runs on the data folder ${dataDir}. Stop it, or name another folder with HIBERNAUT_DATA_DIR.`,
    { data_dir: dataDir },
  );
}
