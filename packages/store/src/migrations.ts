/**
 * The history of the database's schema. `user_version` says how many steps a database has taken; opening one that is
 * behind runs the remaining steps, each in its own transaction.
 */
import { HibernautError } from "@hibernaut/domain/errors";
import type { Database } from "better-sqlite3";

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
  `
  -- Usage. No row refers to apps or machines: what they used is kept when they are gone.
  -- What is metered now, with what accrues per unit of time since then. Times are milliseconds since 1970.
  CREATE TABLE usage_open (
    subject     TEXT PRIMARY KEY,
    app         TEXT NOT NULL,
    machine     TEXT NOT NULL,
    meter       TEXT NOT NULL,
    since       INTEGER NOT NULL,
    cpus        INTEGER NOT NULL,
    memory_mb   INTEGER NOT NULL,
    layer_mb    INTEGER NOT NULL,
    volume_mb   INTEGER NOT NULL,
    snapshot_mb INTEGER NOT NULL,
    state       TEXT NOT NULL,
    woken       INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX usage_open_machine ON usage_open (machine);

  -- Every interval that ended, as it was metered. Rows are added, and never changed or deleted.
  CREATE TABLE usage_intervals (
    seq         INTEGER PRIMARY KEY,
    subject     TEXT NOT NULL,
    app         TEXT NOT NULL,
    machine     TEXT NOT NULL,
    meter       TEXT NOT NULL,
    since       INTEGER NOT NULL,
    until       INTEGER NOT NULL CHECK (until >= since),
    cpus        INTEGER NOT NULL,
    memory_mb   INTEGER NOT NULL,
    layer_mb    INTEGER NOT NULL,
    volume_mb   INTEGER NOT NULL,
    snapshot_mb INTEGER NOT NULL,
    wake        TEXT
  ) STRICT;
  CREATE TRIGGER usage_intervals_keep BEFORE DELETE ON usage_intervals
  BEGIN SELECT raise(ABORT, 'usage is append-only'); END;
  CREATE TRIGGER usage_intervals_fixed BEFORE UPDATE ON usage_intervals
  BEGIN SELECT raise(ABORT, 'usage is append-only'); END;

  -- The same added up by day and month, per machine, per app and in all. REAL: large sums must not overflow.
  CREATE TABLE usage_sums (
    grain              TEXT NOT NULL,
    period             INTEGER NOT NULL,
    name               TEXT NOT NULL,
    running_ms         REAL NOT NULL,
    suspended_ms       REAL NOT NULL,
    stopped_ms         REAL NOT NULL,
    cpu_ms             REAL NOT NULL,
    memory_mb_ms       REAL NOT NULL,
    whole_cpu_ms       REAL NOT NULL,
    whole_memory_mb_ms REAL NOT NULL,
    layer_mb_ms        REAL NOT NULL,
    volume_mb_ms       REAL NOT NULL,
    snapshot_mb_ms     REAL NOT NULL,
    resumes            REAL NOT NULL,
    cold_starts        REAL NOT NULL,
    bytes_in           REAL NOT NULL,
    bytes_out          REAL NOT NULL,
    PRIMARY KEY (grain, name, period)
  ) STRICT, WITHOUT ROWID;

  -- Whose usage it is: machines, and for each app the volumes that no machine has.
  CREATE TABLE usage_names (
    name  TEXT PRIMARY KEY,
    app   TEXT NOT NULL,
    title TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX usage_names_app ON usage_names (app);

  -- Machines and volumes of earlier releases are metered from now on.
  INSERT INTO usage_open
  SELECT id, app, id,
    CASE
      WHEN state IN ('suspended', 'running') THEN state
      WHEN state IN ('created', 'stopped', 'failed', 'restarting') THEN 'stopped'
      ELSE 'running'
    END,
    CAST(unixepoch('subsec') * 1000 AS INTEGER),
    coalesce(document ->> '$.config.guest.cpus', 1), coalesce(document ->> '$.config.guest.memory_mb', 256), 0, 0,
    CAST((coalesce(document ->> '$.snapshot.size_bytes', 0) + 1048575) / 1048576 AS INTEGER), state, 0
  FROM machines WHERE state <> 'destroyed';
  INSERT INTO usage_open
  SELECT volumes.id, volumes.app, coalesce(mounts.machine, 'volumes:' || volumes.app), 'volume',
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 0, 0, 0, size_gb * 1024, 0, '', 0
  FROM volumes LEFT JOIN (
    SELECT machines.id AS machine, mount.value ->> '$.volume' AS volume
    FROM machines, json_each(document, '$.config.mounts') AS mount WHERE machines.state <> 'destroyed'
  ) AS mounts ON mounts.volume = volumes.id
  GROUP BY volumes.id;
  INSERT INTO usage_names SELECT id, app, name FROM machines WHERE state <> 'destroyed';
  INSERT OR IGNORE INTO usage_names SELECT 'volumes:' || app, app, NULL FROM volumes;
  `,

  // The snapshots of a volume that the platform takes by itself: one JSON document. NULL, as for all volumes of earlier
  // releases, when it takes none: an upgrade must not begin to fill a disk.
  "ALTER TABLE volumes ADD COLUMN schedule TEXT",
  `
  -- Certificates that the platform gets by itself. The certificates are files.
  CREATE TABLE certificates (
    name     TEXT PRIMARY KEY,
    app      TEXT NOT NULL REFERENCES apps (name) ON DELETE CASCADE,
    added_at TEXT NOT NULL,
    failure  TEXT
  ) STRICT;
  `,
  `
  -- What the stream of events tells. It outlives what it is about. AUTOINCREMENT: a number never returns.
  CREATE TABLE outbox (
    sequence   INTEGER PRIMARY KEY AUTOINCREMENT,
    at         TEXT NOT NULL,
    type       TEXT NOT NULL,
    app        TEXT,
    machine_id TEXT,
    data       TEXT NOT NULL
  ) STRICT;
  `,
  `
  -- What a token may do. Tokens of earlier releases may do everything, without an end.
  ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '["admin"]';
  -- Whether only the apps in token_apps are meant: a token whose apps are all gone must not reach every app.
  ALTER TABLE tokens ADD COLUMN limited INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tokens ADD COLUMN expires_at TEXT;
  ALTER TABLE tokens ADD COLUMN last_used_at TEXT;
  ALTER TABLE tokens ADD COLUMN replaced_by TEXT;

  -- An app of the same name that is created later belongs to others, so the row goes with the app.
  CREATE TABLE token_apps (
    token TEXT NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
    app   TEXT NOT NULL REFERENCES apps (name) ON DELETE CASCADE,
    PRIMARY KEY (token, app)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX token_apps_app ON token_apps (app);
  `,

  // The quota of an app in place of the platform's: one JSON document, or NULL.
  "ALTER TABLE apps ADD COLUMN quota TEXT",
  `
  -- Addresses that are told of events. Secrets are encrypted with the key of the apps' secrets.
  CREATE TABLE webhooks (
    seq               INTEGER PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    url               TEXT NOT NULL,
    description       TEXT NOT NULL,
    events            TEXT NOT NULL,
    limited           INTEGER NOT NULL,
    created_at        TEXT NOT NULL,
    position          INTEGER NOT NULL,
    disabled_at       TEXT,
    disabled_reason   TEXT,
    ciphertext        BLOB NOT NULL,
    nonce             BLOB NOT NULL,
    former_ciphertext BLOB,
    former_nonce      BLOB,
    former_until      TEXT
  ) STRICT;

  -- The apps of a webhook that is limited. A row outlives its app, whose last events are still to be told, but not those
  -- of an earlier or a later app of the same name: only those after the number in since, up to the one in until.
  CREATE TABLE webhook_apps (
    webhook TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    app     TEXT NOT NULL,
    since   INTEGER NOT NULL,
    until   INTEGER,
    PRIMARY KEY (webhook, app)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX webhook_apps_app ON webhook_apps (app);

  -- What is on its way, and what arrived lately. Times are milliseconds since 1970 where they are compared.
  CREATE TABLE webhook_deliveries (
    webhook     TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    sequence    INTEGER NOT NULL,
    lane        TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    type        TEXT NOT NULL,
    app         TEXT,
    machine_id  TEXT,
    body        TEXT NOT NULL,
    state       TEXT NOT NULL DEFAULT 'pending',
    attempts    INTEGER NOT NULL DEFAULT 0,
    next_at     INTEGER NOT NULL DEFAULT 0,
    at          TEXT,
    status      INTEGER,
    error       TEXT,
    duration_ms INTEGER,
    PRIMARY KEY (webhook, sequence)
  ) STRICT;
  `,
  `
  -- Who is signed in from a browser. Times are milliseconds since 1970.
  CREATE TABLE sessions (
    seq        INTEGER PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,
    token      TEXT NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX sessions_token ON sessions (token, used_at);
  CREATE INDEX sessions_used ON sessions (used_at);
  `,
  `
  -- What machines did, for charts. Times are milliseconds since 1970. Old rows are dropped.
  CREATE TABLE machine_states (
    seq     INTEGER PRIMARY KEY,
    machine TEXT NOT NULL REFERENCES machines (id) ON DELETE CASCADE,
    at      INTEGER NOT NULL,
    before  TEXT NOT NULL,
    state   TEXT NOT NULL
  ) STRICT;
  CREATE INDEX machine_states_machine ON machine_states (machine, at);

  CREATE TABLE machine_wakes (
    seq         INTEGER PRIMARY KEY,
    machine     TEXT NOT NULL REFERENCES machines (id) ON DELETE CASCADE,
    at          INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    reason      TEXT NOT NULL,
    duration_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX machine_wakes_machine ON machine_wakes (machine, at);

  -- When the paused VMM of a suspended machine was kept.
  CREATE TABLE machine_warm (
    seq        INTEGER PRIMARY KEY,
    machine    TEXT NOT NULL REFERENCES machines (id) ON DELETE CASCADE,
    from_ms    INTEGER NOT NULL,
    until_ms   INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX machine_warm_machine ON machine_warm (machine, until_ms);

  -- What earlier releases know: the history of machines, and the starts that the stream of events still has.
  INSERT INTO machine_states (machine, at, before, state)
  -- In a passing state, a machine does what it did before.
  SELECT machine_id, at, coalesce(lag(state) OVER (PARTITION BY machine_id ORDER BY seq), first), state FROM (
    SELECT machine_id, seq, CAST(unixepoch(at, 'subsec') * 1000 AS INTEGER) AS at,
      CASE from_state WHEN 'running' THEN 'running' WHEN 'starting' THEN 'running' WHEN 'suspended' THEN 'suspended'
        WHEN 'failed' THEN 'failed' WHEN 'suspending' THEN 'running' WHEN 'stopping' THEN 'running' ELSE 'stopped' END AS first,
      CASE to_state WHEN 'running' THEN 'running' WHEN 'starting' THEN 'running' WHEN 'suspended' THEN 'suspended'
        WHEN 'failed' THEN 'failed' ELSE 'stopped' END AS state
    FROM events
    WHERE from_state IS NOT NULL AND from_state <> to_state
      AND to_state IN ('created', 'running', 'starting', 'suspended', 'stopped', 'failed', 'restarting')
  ) WHERE at IS NOT NULL ORDER BY seq;
  INSERT INTO machine_wakes (machine, at, kind, reason, duration_ms)
  SELECT machine_id, CAST(unixepoch(at, 'subsec') * 1000 AS INTEGER), data ->> '$.start.kind', data ->> '$.start.reason',
    CAST(data ->> '$.start.duration_ms' AS INTEGER)
  FROM outbox
  WHERE type = 'machine.running' AND data ->> '$.event' = 'started' AND data ->> '$.start.duration_ms' IS NOT NULL
    AND machine_id IN (SELECT id FROM machines)
  ORDER BY sequence;
  `,

  // Whether anyone may see how an app is.
  "ALTER TABLE apps ADD COLUMN status_page INTEGER NOT NULL DEFAULT 0",
  `
  -- The event that told of an app's creation: those before it are of an earlier app of its name. Zero where the stream has
  -- forgotten it, and with it all of an earlier app.
  ALTER TABLE apps ADD COLUMN first_event INTEGER NOT NULL DEFAULT 0;
  UPDATE apps SET first_event = coalesce(
    (SELECT max(sequence) FROM outbox WHERE type = 'app.created' AND outbox.app = apps.name), 0);
  `,

  // How often a volume has changed hosts in a cluster.
  "ALTER TABLE volumes ADD COLUMN epoch INTEGER",

  // The names at which people have signed in, with the last time, in milliseconds since 1970.
  "CREATE TABLE reserved_names (name TEXT PRIMARY KEY, used_at INTEGER NOT NULL) WITHOUT ROWID",
  `
  -- What machines are born from. \`machine\` is the record of the one that it was taken from.
  CREATE TABLE templates (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    app        TEXT NOT NULL REFERENCES apps (name),
    name       TEXT NOT NULL,
    created_at TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    machine    TEXT NOT NULL,
    UNIQUE (app, name)
  ) STRICT;
  `,
  "ALTER TABLE templates ADD COLUMN warm_pool INTEGER NOT NULL DEFAULT 0",
  `
  -- Builds of templates. \`build\` is the whole record; \`log\` is long, and read for one build at a time.
  CREATE TABLE template_builds (
    seq    INTEGER PRIMARY KEY,
    id     TEXT NOT NULL UNIQUE,
    app    TEXT NOT NULL REFERENCES apps (name) ON DELETE CASCADE,
    build  TEXT NOT NULL,
    log    TEXT NOT NULL DEFAULT '[]'
  ) STRICT;
  CREATE INDEX template_builds_app ON template_builds (app);

  -- Names that lead to templates. They go with what they lead to.
  CREATE TABLE template_tags (
    app         TEXT NOT NULL REFERENCES apps (name) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    tag         TEXT NOT NULL,
    build       TEXT NOT NULL,
    template    TEXT NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    assigned_at TEXT NOT NULL,
    PRIMARY KEY (app, name, tag)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX template_tags_template ON template_tags (template);
  `,
  // Whether a token has the form that E2B's clients accept, which its successor needs, too.
  "ALTER TABLE tokens ADD COLUMN e2b INTEGER NOT NULL DEFAULT 0",
  // An app's place in a network that it shares with others, as JSON. Null for an app that shares none.
  `
  ALTER TABLE apps ADD COLUMN network TEXT;
  CREATE INDEX apps_of_network ON apps (network ->> '$.name');
  `,
  // What an app is a preview of, as JSON, and whether a token reaches only the previews of its apps.
  `
  ALTER TABLE apps ADD COLUMN preview TEXT;
  CREATE INDEX apps_that_are_previews ON apps (preview ->> '$.of') WHERE preview IS NOT NULL;
  ALTER TABLE tokens ADD COLUMN previews INTEGER NOT NULL DEFAULT 0;
  `,
  // Whether a template was copied from another host of the cluster.
  "ALTER TABLE templates ADD COLUMN copied INTEGER NOT NULL DEFAULT 0",
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
