/**
 * The history of the database's schema. `user_version` says how many steps a database has taken; opening one that is
 * behind runs the remaining steps, each in its own transaction.
 */
import type { Database } from "better-sqlite3";
import { HibernautError } from "../domain/errors.ts";

/** Step N leads from version N to N + 1. A released step never changes: append a new one. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE apps (
    name       TEXT PRIMARY KEY,
    created_at TEXT NOT NULL
  ) STRICT;

  -- Queries and constraints need the columns; the rest of the record is in document.
  CREATE TABLE machines (
    seq      INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE,
    app      TEXT NOT NULL REFERENCES apps (name) ON DELETE CASCADE,
    name     TEXT NOT NULL,
    state    TEXT NOT NULL,
    document TEXT NOT NULL
  ) STRICT;
  -- A destroyed machine frees its name.
  CREATE UNIQUE INDEX machines_live_name ON machines (app, name) WHERE state <> 'destroyed';
  CREATE INDEX machines_app ON machines (app);

  CREATE TABLE events (
    seq        INTEGER PRIMARY KEY,
    machine_id TEXT NOT NULL REFERENCES machines (id) ON DELETE CASCADE,
    at         TEXT NOT NULL,
    type       TEXT NOT NULL,
    from_state TEXT,
    to_state   TEXT NOT NULL,
    details    TEXT NOT NULL
  ) STRICT;
  CREATE INDEX events_machine ON events (machine_id, seq);

  CREATE TABLE tokens (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    revoked_at TEXT
  ) STRICT;

  -- One row that the health check writes, to prove that the disk can be written.
  CREATE TABLE health (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    checked_at TEXT NOT NULL
  ) STRICT;
  `,
  `
  -- Custom hostnames of apps at the proxy.
  CREATE TABLE hostnames (
    name TEXT PRIMARY KEY,
    app  TEXT NOT NULL REFERENCES apps (name) ON DELETE CASCADE
  ) STRICT;
  `,
  `
  -- What was deployed, and with which outcome.
  CREATE TABLE releases (
    app         TEXT NOT NULL REFERENCES apps (name) ON DELETE CASCADE,
    version     INTEGER NOT NULL,
    status      TEXT NOT NULL,
    image       TEXT NOT NULL,
    digest      TEXT NOT NULL,
    description TEXT NOT NULL,
    created_at  TEXT NOT NULL,
    PRIMARY KEY (app, version)
  ) STRICT;
  `,
  `
  -- Encrypted with a key that is not in the database.
  CREATE TABLE secrets (
    app        TEXT NOT NULL REFERENCES apps (name) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    ciphertext BLOB NOT NULL,
    nonce      BLOB NOT NULL,
    digest     TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (app, name)
  ) STRICT;
  `,
  `
  -- Disks that outlive machines. A row is deleted only after its files.
  CREATE TABLE volumes (
    seq                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,
    app                TEXT NOT NULL REFERENCES apps (name),
    name               TEXT NOT NULL,
    size_gb            INTEGER NOT NULL,
    state              TEXT NOT NULL,
    snapshot_retention INTEGER NOT NULL,
    created_at         TEXT NOT NULL
  ) STRICT;
  CREATE INDEX volumes_app ON volumes (app);

  CREATE TABLE volume_snapshots (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    volume_id  TEXT NOT NULL REFERENCES volumes (id),
    size_gb    INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    state      TEXT NOT NULL,
    created_at TEXT NOT NULL
  ) STRICT;
  CREATE INDEX volume_snapshots_volume ON volume_snapshots (volume_id);
  `,
  `
  -- One row while the platform drains.
  CREATE TABLE drain (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    document TEXT NOT NULL
  ) STRICT;
  `,
];

/** Migrates the database to the newest version. Throws `failed_precondition` when it is newer than this program. */
export function migrate(db: Database): void {
  const version = schemaVersion(db);
  if (version > MIGRATIONS.length) throw tooNew(db.name, version);
  for (const [offset, step] of MIGRATIONS.slice(version).entries()) {
    const next = version + offset + 1;
    db.transaction(() => {
      db.exec(step);
      db.pragma(`user_version = ${next}`);
    }).immediate();
  }
}

/** Returns the database's schema version, 0 for a new database. */
export function schemaVersion(db: Database): number {
  return Number(db.pragma("user_version", { simple: true }));
}

function tooNew(file: string, version: number): HibernautError {
  return new HibernautError(
    "failed_precondition",
    `The database ${file} has schema version ${version}, written by a newer Hibernaut; this one supports versions up to ${MIGRATIONS.length}. Start the newer Hibernaut, or set HIBERNAUT_DATA_DIR to another directory.`,
    { file, version, known: MIGRATIONS.length },
  );
}
