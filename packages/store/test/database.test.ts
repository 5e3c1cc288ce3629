import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite, { type Database } from "better-sqlite3";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../src/database.ts";
import { MIGRATIONS, migrate, schemaVersion } from "../src/migrations.ts";
import { openStore } from "../src/open.ts";
import { temporaryFolder } from "./helpers.ts";

let file: string;

function closedAfter(db: Database): Database {
  onTestFinished(() => void db.close());
  return db;
}

beforeEach(() => {
  file = join(temporaryFolder(), "hibernaut.db");
});

test("the settings that durability depends on are set", () => {
  const db = closedAfter(openDatabase(file));
  const pragma = (name: string): unknown => db.pragma(name, { simple: true });
  expect(pragma("journal_mode")).toBe("wal");
  expect(pragma("synchronous")).toBe(2); // FULL
  expect(pragma("foreign_keys")).toBe(1);
  expect(pragma("busy_timeout")).toBe(5000);
});

test("only the owner can read the files", () => {
  const db = closedAfter(openDatabase(file));
  db.exec("INSERT INTO apps (name, created_at) VALUES ('shop', 'now')");
  for (const suffix of ["", "-wal", "-shm"]) expect(statSync(file + suffix).mode & 0o777).toBe(0o600);
});

test("an empty database is migrated, and a migrated one is not touched", () => {
  const db = closedAfter(new Sqlite(file));
  expect(schemaVersion(db)).toBe(0);
  migrate(db);
  expect(schemaVersion(db)).toBe(MIGRATIONS.length);
  const schema = () => db.prepare("SELECT sql FROM sqlite_schema ORDER BY name").all();
  const before = schema();
  migrate(db);
  expect(schema()).toEqual(before);
  expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
});

test("charts begin with what an earlier release knew of its machines", () => {
  const db = closedAfter(new Sqlite(file));
  const before = MIGRATIONS.findIndex((step) => step.includes("CREATE TABLE machine_states"));
  for (const step of MIGRATIONS.slice(0, before)) db.exec(step);
  db.pragma(`user_version = ${before}`);
  db.exec(`
    INSERT INTO apps (name, created_at) VALUES ('shop', '2026-01-31T10:00:00.000Z');
    INSERT INTO machines (id, app, name, state, document) VALUES ('0123456789abcd', 'shop', 'web', 'suspended', '{}');
    INSERT INTO events (machine_id, at, type, from_state, to_state, details) VALUES
      ('0123456789abcd', '2026-01-31T10:00:00.000Z', 'create', NULL, 'created', '{}'),
      ('0123456789abcd', '2026-01-31T10:00:01.000Z', 'start', 'created', 'starting', '{}'),
      ('0123456789abcd', '2026-01-31T10:00:02.500Z', 'started', 'starting', 'running', '{}'),
      ('0123456789abcd', '2026-01-31T10:05:00.000Z', 'suspend', 'running', 'suspending', '{}'),
      ('0123456789abcd', '2026-01-31T10:05:01.000Z', 'captured', 'suspending', 'suspended', '{}'),
      ('0123456789abcd', '2026-01-31T11:00:00.000Z', 'update', 'suspended', 'updating', '{}'),
      ('0123456789abcd', '2026-01-31T11:00:01.000Z', 'start', 'updating', 'starting', '{}'),
      ('0123456789abcd', '2026-01-31T11:00:02.000Z', 'started', 'starting', 'running', '{}'),
      ('0123456789abcd', '2026-01-31T12:00:00.000Z', 'stop', 'running', 'stopping', '{}'),
      ('0123456789abcd', '2026-01-31T12:00:05.000Z', 'halted', 'stopping', 'stopped', '{}');
    INSERT INTO outbox (at, type, app, machine_id, data) VALUES
      ('2026-01-31T10:00:02.500Z', 'machine.running', 'shop', '0123456789abcd',
        '{"event":"started","start":{"kind":"cold","reason":"never_started","at":"x","duration_ms":1499.6}}'),
      ('2026-01-31T10:00:03.500Z', 'machine.running', 'shop', 'gone0000000000',
        '{"event":"started","start":{"kind":"cold","reason":"never_started","at":"x","duration_ms":1}}');
  `);
  db.close();
  const store = openStore(file);
  onTestFinished(() => store.close());
  const at = (time: string) => Date.parse(`2026-01-31T${time}Z`);
  expect(store.timeline.states("0123456789abcd", 0)).toEqual([
    { at: at("10:00:01.000"), before: "stopped", state: "running" },
    { at: at("10:00:02.500"), before: "running", state: "running" },
    { at: at("10:05:01.000"), before: "running", state: "suspended" },
    { at: at("11:00:01.000"), before: "suspended", state: "running" },
    { at: at("11:00:02.000"), before: "running", state: "running" },
    { at: at("12:00:05.000"), before: "running", state: "stopped" },
  ]);
  expect(store.timeline.wakes("0123456789abcd", 0, 10)).toEqual([
    { at: at("10:00:02.500"), kind: "cold", reason: "never_started", durationMs: 1499 },
  ]);
});

test("a database of a newer program is refused and not changed", () => {
  const db = closedAfter(new Sqlite(file));
  db.pragma("user_version = 999");
  expect(() => openStore(file)).toThrow(
    expect.objectContaining({
      code: "failed_precondition",
      message: expect.stringMatching(/version 999.*newer Hibernaut.*HIBERNAUT_DATA_DIR/),
    }),
  );
  expect(schemaVersion(db)).toBe(999);
});

test("a file that is not a database is refused", () => {
  writeFileSync(file, "a".repeat(8192));
  expect(() => openStore(file)).toThrow("not a database");
});

test("the check writes, and fails when it cannot", () => {
  const store = openStore(file);
  store.check();
  store.check();
  store.close();
  expect(() => store.check()).toThrow();
});
