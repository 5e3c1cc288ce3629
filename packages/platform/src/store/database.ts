/** Opens the SQLite file with the settings that durability rests on. */
import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import Sqlite, { type Database } from "better-sqlite3";
import { migrate } from "./migrations.ts";

/** The platform is the only writer; another program that looks in (a backup, sqlite3) gets this long to finish. */
const BUSY_TIMEOUT_MS = 5000;

/** Opens the database, makes it and its folder when absent, and brings it to the newest schema. */
export function openDatabase(file: string): Database {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const db = new Sqlite(file);
  try {
    // Configurations hold secrets of apps; SQLite gives its log files the mode of this one.
    chmodSync(file, 0o600);
    configure(db);
    migrate(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function configure(db: Database): void {
  db.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  db.pragma("journal_mode = WAL");
  // The usual NORMAL may lose the last commits at a power cut, and a consumed snapshot would run twice.
  db.pragma("synchronous = FULL");
  db.pragma("foreign_keys = ON");
}
