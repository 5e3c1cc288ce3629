/** The tables of a cluster directory in an SQLite file. */
import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import Sqlite, { type Database } from "better-sqlite3";

/** How long to wait for another host that writes to the same file. A transaction takes some milliseconds. */
const BUSY_TIMEOUT_MS = 5000;

const TABLES = `
  CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, revision INTEGER NOT NULL, lease INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS entries_by_lease ON entries (lease) WHERE lease IS NOT NULL;
  CREATE TABLE IF NOT EXISTS history (
    revision INTEGER NOT NULL, key TEXT NOT NULL, value TEXT, PRIMARY KEY (revision, key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS leases (
    id INTEGER PRIMARY KEY AUTOINCREMENT, ttl_ms INTEGER NOT NULL, ends_at INTEGER NOT NULL
  ) STRICT;
  -- The last revision, and the last one whose changes are forgotten.
  CREATE TABLE IF NOT EXISTS revisions (one INTEGER PRIMARY KEY CHECK (one = 1), last INTEGER, forgotten INTEGER) STRICT;
  INSERT OR IGNORE INTO revisions VALUES (1, 1, 0);
`;

/** Opens the file, which several hosts may have open at once. Makes it and its directory when they don't exist. */
export function openDirectoryFile(file: string): Database {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const db = new Sqlite(file);
  try {
    chmodSync(file, 0o600);
    db.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
    db.pragma("journal_mode = WAL");
    // What was agreed must not be lost to a power cut.
    db.pragma("synchronous = FULL");
    db.transaction(() => db.exec(TABLES)).immediate();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
