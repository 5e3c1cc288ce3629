/** Opens the SQLite file with the settings that durability depends on. */
import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import Sqlite, { type Database } from "better-sqlite3";
import { migrate } from "./migrations.ts";

/** How long to wait for another program that reads the database, such as a backup. The platform is the only writer. */
const BUSY_TIMEOUT_MS = 5000;

/** Opens the database and migrates it to the newest schema. Makes the file and its directory when they don't exist. */
export function openDatabase(file: string): Database {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const db = new Sqlite(file);
  try {
    // Configurations may contain passwords. SQLite gives its log files the mode of this file.
    chmodSync(file, 0o600);
    configure(db);
    migrate(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Commits what `work` writes without waiting for the disk. The order of all commits stays what it is. */
export function withoutSync(db: Database, work: () => void): void {
  db.pragma("synchronous = NORMAL");
  try {
    work();
  } finally {
    db.pragma("synchronous = FULL");
  }
}

/** Returns a function that does this work in one transaction: all of it is stored, or nothing. */
export function atomic<Args extends unknown[], R>(db: Database, work: (...args: Args) => R): (...args: Args) => R {
  const transaction = db.transaction(work);
  return (...args) => transaction.immediate(...args);
}

/** Ends the work of {@link whole}. */
export const UNKNOWN = new Error("there is nothing to change, or it refers to something that does not exist");

/** As {@link atomic}; the function returns false, and nothing is stored, when the work ended with {@link UNKNOWN}. */
export function whole<Args extends unknown[]>(db: Database, work: (...args: Args) => void): (...args: Args) => boolean {
  const change = atomic(db, work);
  return (...args) => {
    try {
      change(...args);
      return true;
    } catch (error) {
      if (error === UNKNOWN) return false;
      throw error;
    }
  };
}

function configure(db: Database): void {
  db.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  db.pragma("journal_mode = WAL");
  // With NORMAL, a power cut may lose the last commits, and a consumed snapshot would run twice.
  db.pragma("synchronous = FULL");
  db.pragma("foreign_keys = ON");
}
