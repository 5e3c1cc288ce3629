/** Usage in the store: together with the change that it follows, in order whatever the clock does, and never deleted. */
import { join } from "node:path";
import { type MachineRecord, type MachineState, STATES } from "@hibernaut/domain/machine";
import { DAY_MS, dayOf, monthOf, type PeriodRange, periodRanges } from "@hibernaut/domain/periods";
import type { Store, UsageQuery } from "@hibernaut/store";
import { openStore } from "@hibernaut/store/open";
import Sqlite from "better-sqlite3";
import fc from "fast-check";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { MIGRATIONS, migrate } from "../../store/src/migrations.ts";
import { parametersOf, sumsSql } from "../../store/src/usage.ts";
import { machineEvent, machineRecord, temporaryFolder } from "../../store/test/helpers.ts";
import { expectWhole, intervalsOf } from "./ledger.ts";

const AT = "2026-01-01T00:00:00.000Z";
const BEGIN = Date.parse(AT);
/** Usage begins with the step of this number. */
const BEFORE_USAGE = MIGRATIONS.findIndex((step) => step.includes("CREATE TABLE usage_open"));
let file: string;
let store: Store;
let now: number;

beforeEach(() => {
  now = BEGIN;
  file = join(temporaryFolder(), "hibernaut.db");
  store = openStore(file, () => now);
  onTestFinished(() => store.close());
  store.apps.insert({ name: "shop", createdAt: AT });
});

const MACHINE = machineRecord();
const volume = (id: string, sizeGb = 1) =>
  ({ id, app: "shop", name: "data", sizeGb, state: "created", snapshotRetention: 5, createdAt: AT }) as const;
const create = (changes: Partial<MachineRecord> = {}) =>
  store.machines.insert({ ...MACHINE, ...changes }, machineEvent());
const become = (state: MachineState, changes: Partial<MachineRecord> = {}) =>
  store.machines.update({ ...MACHINE, ...changes, state }, machineEvent({ to: state, type: "started" }));
const only = (period: number): PeriodRange => ({ first: period, last: period, weight: 1 });
const sum = (ranges = [only(monthOf(BEGIN))], machine?: string) =>
  store.usage.sums({ grain: "machine", ranges, machine }).find(({ name }) => name === (machine ?? MACHINE.id));

test("a machine's day: each second counts once, for what the machine was", () => {
  create();
  now += 1000;
  become("starting");
  now += 2000;
  become("running");
  now += 3000;
  become("suspending");
  now += 4000;
  become("suspended", { snapshot: { generation: "g", created_at: AT, size_bytes: 5_000_000 } });
  now += 5000;
  become("destroying", { snapshot: null });
  now += 6000;
  become("destroyed");
  expect(sum()).toMatchObject({
    stopped_ms: 1000,
    running_ms: 9000,
    suspended_ms: 11_000,
    cpu_ms: 9000,
    memory_mb_ms: 9000 * 256,
    whole_cpu_ms: 21_000,
    snapshot_mb_ms: 5 * 5000,
  });
  expect(store.usage.open()).toEqual([]);
  expectWhole(file, []);
});

test("the change and the interval it ends are stored together or not at all", () => {
  create();
  now += 1000;
  const db = new Sqlite(file);
  onTestFinished(() => void db.close());
  db.exec("CREATE TRIGGER broken BEFORE INSERT ON usage_sums BEGIN SELECT raise(ABORT, 'broken'); END");
  expect(() => become("starting")).toThrow("broken");
  expect(store.machines.get(MACHINE.id)?.state).toBe("created");
  expect(intervalsOf(file)).toEqual([]);
  expect(store.machines.events(MACHINE.id, 10)).toHaveLength(1);
  db.exec("DROP TRIGGER broken");
  now += 1000;
  become("starting");
  expect(sum()).toMatchObject({ stopped_ms: 2000 });
  expectWhole(file, store.usage.open());
});

test("intervals are never changed or deleted", () => {
  create();
  now += 1000;
  become("starting");
  const db = new Sqlite(file);
  onTestFinished(() => void db.close());
  expect(() => db.exec("DELETE FROM usage_intervals")).toThrow("append-only");
  expect(() => db.exec("UPDATE usage_intervals SET until = 0")).toThrow("append-only");
});

test("a clock that steps back counts nothing until it has caught up", () => {
  create();
  become("running");
  now += 60_000;
  become("suspended");
  now -= 3_600_000;
  become("running");
  now += 10_000;
  become("suspended");
  // 50 minutes and 50 seconds are still missing, and then the meter runs again.
  now = BEGIN + 60_000 + 7000;
  become("running");
  expect(sum()).toMatchObject({ running_ms: 60_000, suspended_ms: 7000 });
  expectWhole(file, store.usage.open());
});

test("a long sleep is cut at each midnight", () => {
  create();
  become("suspended");
  now += 60 * DAY_MS + 5000;
  become("starting");
  expect(sum([only(monthOf(BEGIN))])?.suspended_ms).toBe(31 * DAY_MS);
  expect(sum([only(202602)])?.suspended_ms).toBe(28 * DAY_MS);
  expect(sum([only(202603)])?.suspended_ms).toBe(DAY_MS + 5000);
  expect(sum([only(20260302)])?.suspended_ms).toBe(5000);
  expect(intervalsOf(file)).toHaveLength(1);
  expectWhole(file, store.usage.open());
});

describe("wakes", () => {
  const boot = (kind: "resume" | "cold") => ({ lastBoot: { kind, reason: "snapshot", at: AT, duration_ms: 1 } });
  const start = (by?: string) =>
    store.machines.update(
      { ...MACHINE, state: "starting" },
      machineEvent({ type: "start", to: "starting", details: by === undefined ? {} : { by } }),
    );

  test("are starts that the proxy asked for, by kind", () => {
    create();
    start("proxy");
    become("running", boot("cold"));
    become("suspended");
    start("proxy");
    become("running", boot("resume"));
    become("suspended");
    start();
    become("running", boot("resume"));
    expect(sum()).toMatchObject({ resumes: 1, cold_starts: 1 });
    expect(intervalsOf(file).flatMap(({ wake }) => wake ?? [])).toEqual(["cold", "resume"]);
  });

  test("that fail do not count, and leave nothing for the next start", () => {
    create();
    start("proxy");
    become("failed");
    start();
    become("running", boot("cold"));
    expect(sum() ?? { cold_starts: 0 }).toMatchObject({ cold_starts: 0 });
  });

  test("do not include a suspend that a request cancels", () => {
    create();
    become("running", boot("cold"));
    become("suspending");
    store.machines.update(
      { ...MACHINE, state: "suspending", goal: "running" },
      machineEvent({ type: "start", details: { by: "proxy" } }),
    );
    become("running", boot("cold"));
    now += 1;
    become("suspended");
    expect(sum()).toMatchObject({ resumes: 0, cold_starts: 0 });
  });
});

describe("volumes", () => {
  const ID = "vol_0000000000000001";
  const config = { ...MACHINE.config, mounts: [{ volume: ID, path: "/data" }] };
  const LOOSE = "volumes:shop";

  test("count for their machine while it has them, and for their app otherwise", () => {
    store.volumes.insert(volume(ID));
    now += 1000;
    create({ config });
    now += 2000;
    store.volumes.update(volume(ID, 2));
    now += 4000;
    become("destroyed", { config });
    now += 8000;
    store.volumes.remove(ID);
    expect(sum([only(dayOf(BEGIN))])?.volume_mb_ms).toBe(1024 * 2000 + 2048 * 4000);
    expect(sum([only(dayOf(BEGIN))], LOOSE)?.volume_mb_ms).toBe(1024 * 1000 + 2048 * 8000);
    expect(store.usage.open()).toEqual([]);
    expectWhole(file, []);
  });

  test("follow an update that takes them away", () => {
    store.volumes.insert(volume(ID));
    create({ config });
    now += 1000;
    become("stopped");
    expect(store.usage.open().find(({ subject }) => subject === ID)?.machine).toBe(LOOSE);
    expect(sum()?.volume_mb_ms).toBe(1024 * 1000);
  });
});

test("a template counts as a snapshot of its app until it is deleted, and for no machine", () => {
  const template = { id: "0123456789abcd", app: "shop", name: "ready", createdAt: AT, warmPool: 0, machine: MACHINE };
  store.templates.insert({ ...template, sizeBytes: 3 * 1024 * 1024 });
  now += 1000;
  store.templates.setPool(template.id, 2);
  store.templates.remove({ ...template, sizeBytes: 3 * 1024 * 1024 });
  now += 1000;
  expect(sum([only(dayOf(BEGIN))], "volumes:shop")).toMatchObject({ snapshot_mb_ms: 3 * 1000, suspended_ms: 0 });
  expect(store.usage.open()).toEqual([]);
  expectWhole(file, []);
});

test("layers count from when they are measured", () => {
  create();
  store.usage.measureLayer(MACHINE.id, 3);
  now += 1000;
  store.usage.measureLayer(MACHINE.id, 3);
  now += 1000;
  store.usage.measureLayer(MACHINE.id, 4);
  now += 1000;
  become("destroyed");
  store.usage.measureLayer(MACHINE.id, 5);
  expect(sum()?.layer_mb_ms).toBe(3 * 2000 + 4 * 1000);
  expect(store.usage.open()).toEqual([]);
});

test("traffic counts for the day, even when the machine is gone, and never for one that nobody knows", () => {
  create();
  become("destroyed");
  const traffic = { bytesIn: 5, bytesOut: 7 };
  const all = new Map([MACHINE.id, "ffffffffffffff"].map((id) => [id, traffic]));
  store.usage.addTraffic(all);
  store.usage.addTraffic(all);
  expect(store.usage.sums({ grain: "all", ranges: [only(dayOf(BEGIN))] })).toMatchObject([
    { bytes_in: 10, bytes_out: 14 },
  ]);
});

test("usage outlives the machine and its app", () => {
  create();
  now += 1000;
  become("destroyed");
  expect(store.apps.delete("shop")).toBe(true);
  expect(sum()?.stopped_ms).toBe(1000);
  expect(store.usage.machine(MACHINE.id)).toEqual({ app: "shop", name: "web-1" });
  expect(store.usage.knowsApp("shop")).toBe(true);
  expect(store.usage.knowsApp("blog")).toBe(false);
});

test("whatever happens, and whatever the clock does, no time is lost or counted twice", () => {
  const step = fc.record({
    state: fc.constantFrom(...STATES.filter((state) => state !== "destroyed")),
    ms: fc.oneof(fc.integer({ min: -5 * DAY_MS, max: 5 * DAY_MS }), fc.constantFrom(0, 1, DAY_MS)),
    change: fc.constantFrom({}, { guest: { cpus: 2, memory_mb: 512 } }),
    layer: fc.integer({ min: 0, max: 3 }),
  });
  let count = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
      const id = `${count++}`.padStart(14, "0");
      const begin = now;
      create({ id, name: id });
      let latest = begin;
      for (const { state, ms, change, layer } of steps) {
        now += ms;
        latest = Math.max(latest, now);
        store.usage.measureLayer(id, layer);
        become(state, { id, name: id, config: { ...MACHINE.config, ...change } });
      }
      now = latest;
      become("destroyed", { id, name: id });
      const ranges = periodRanges(Math.floor(begin / DAY_MS) * DAY_MS, Math.ceil((latest + 1) / DAY_MS) * DAY_MS);
      const used = sum(ranges, id);
      const counted = (used?.running_ms ?? 0) + (used?.suspended_ms ?? 0) + (used?.stopped_ms ?? 0);
      expect(counted).toBe(latest - begin);
    }),
    { numRuns: 40 },
  );
  expectWhole(file, store.usage.open());
});

describe("reading", () => {
  const ranges = periodRanges(Date.UTC(2026, 0, 2), Date.UTC(2026, 11, 31));
  const plan = (query: UsageQuery) => {
    const db = new Sqlite(file, { readonly: true });
    onTestFinished(() => void db.close());
    const rows = db.prepare(`EXPLAIN QUERY PLAN ${sumsSql(query)}`).all(parametersOf(query)) as { detail: string }[];
    return rows.map(({ detail }) => detail).join("; ");
  };

  test.each<Omit<UsageQuery, "ranges">>([
    { grain: "machine" },
    { grain: "app" },
    { grain: "machine", app: "shop" },
    { grain: "machine", machine: MACHINE.id, byPeriod: true },
    { grain: "app", app: "shop", byPeriod: true },
    { grain: "all", byPeriod: true },
  ])("%j finds each row by the primary key and sorts none", (query) => {
    const steps = plan({ ...query, ranges });
    expect(steps).toMatch(/SEARCH s USING PRIMARY KEY \(grain=\? AND name=\? AND period>\? AND period<\?\)/);
    expect(steps).not.toMatch(/SCAN s\b/);
    // Of a report by day there are few rows, one for each.
    if (query.byPeriod !== true) expect(steps).not.toContain("TEMP B-TREE FOR GROUP BY");
  });

  test("many wakes of a day are one row to read", () => {
    create();
    for (let count = 0; count < 50; count += 1) {
      become(count % 2 === 0 ? "running" : "suspended");
      now += 1000;
    }
    const db = new Sqlite(file, { readonly: true });
    onTestFinished(() => void db.close());
    const rows = db.prepare("SELECT count(*) AS rows FROM usage_sums WHERE grain = 'machine'").get();
    // A day and a month.
    expect(rows).toEqual({ rows: 2 });
    expect(intervalsOf(file).length).toBeGreaterThan(40);
  });
});

test("machines and volumes of earlier releases are metered from the upgrade on", () => {
  const old = join(temporaryFolder(), "hibernaut.db");
  const db = new Sqlite(old);
  for (const step of MIGRATIONS.slice(0, BEFORE_USAGE)) db.exec(step);
  db.pragma(`user_version = ${BEFORE_USAGE}`);
  db.exec("INSERT INTO apps VALUES ('shop', 'now')");
  const add = db.prepare("INSERT INTO machines (id, app, name, state, document) VALUES (?, 'shop', ?, ?, ?)");
  const snapshot = { size_bytes: 3_000_000 };
  const mounts = [{ volume: "vol_1", path: "/data" }];
  add.run("a", "asleep", "suspended", JSON.stringify({ config: { guest: { memory_mb: 512 }, mounts }, snapshot }));
  add.run("b", "busy", "starting", JSON.stringify({ config: { guest: { cpus: 4 } }, snapshot: null }));
  add.run("c", "gone", "destroyed", JSON.stringify({ config: {} }));
  add.run("d", "broken", "failed", JSON.stringify({ config: {} }));
  const volumeRow = db.prepare("INSERT INTO volumes VALUES (NULL, ?, 'shop', 'data', 2, 'created', 5, 'now')");
  for (const id of ["vol_1", "vol_2"]) volumeRow.run(id);
  migrate(db);
  db.close();
  const upgraded = openStore(old);
  onTestFinished(() => upgraded.close());
  const open = upgraded.usage.open().toSorted((one, other) => (one.subject < other.subject ? -1 : 1));
  for (const { since } of open) expect(Math.abs(since - Date.now())).toBeLessThan(60_000);
  expect(open).toMatchObject([
    { subject: "a", meter: "suspended", cpus: 1, memoryMb: 512, snapshotMb: 3 },
    { subject: "b", meter: "running", cpus: 4, memoryMb: 256, snapshotMb: 0 },
    { subject: "d", meter: "stopped" },
    { subject: "vol_1", meter: "volume", machine: "a", volumeMb: 2048 },
    { subject: "vol_2", meter: "volume", machine: "volumes:shop", volumeMb: 2048 },
  ]);
  expect(upgraded.usage.machine("a")).toEqual({ app: "shop", name: "asleep" });
  expect(upgraded.usage.names().get("volumes:shop")).toMatchObject({ app: "shop", title: null });
});
