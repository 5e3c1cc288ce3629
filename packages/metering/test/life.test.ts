/** What a user sees of usage: machines live on the fake hypervisor, and the clock of usage is moved by the test. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { DAY_MS } from "@hibernaut/domain/periods";
import { openStore } from "@hibernaut/store/open";
import Sqlite from "better-sqlite3";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import {
  type FakePlatform,
  newWorld,
  SMALL,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { usageMetrics } from "../src/metrics.ts";
import { UsageRecorder } from "../src/recorder.ts";
import { Usage } from "../src/usage.ts";
import { expectWhole } from "./ledger.ts";

const TIMEOUT = { timeoutMs: 5000 };
const HOUR_MS = 3_600_000;
const MB = 1024 * 1024;
const PRICES = { currency: "EUR", cpu_second: 0.00001, memory_gb_second: 0.000002, storage_gb_month: 0.15 };
let now: number;
let world: World;
let platform: FakePlatform;
let usage: Usage;

beforeEach(async () => {
  now = Date.parse("2026-01-10T08:00:00Z");
  world = await newWorld({ now: () => now });
  platform = await startPlatform(world);
  platform.apps.create("shop");
  usage = new Usage({ store: world.store.usage, prices: PRICES, now: () => now });
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

const reach = (id: string, state: "running" | "suspended" | "stopped" | "destroyed") =>
  platform.machines.wait("shop", id, [state], TIMEOUT);

async function machine(name: string, volume: string): Promise<string> {
  const config = { ...SMALL, mounts: [{ volume, path: "/data" }] };
  const { record } = await platform.machines.create("shop", { name, config });
  await reach(record.id, "running");
  return record.id;
}

function recorder(layerBytes = 0): UsageRecorder {
  const made = new UsageRecorder({
    store: world.store.usage,
    intervalMs: HOUR_MS,
    machines: () => platform.machines.all().map(({ record }) => record.id),
    layerBytes: async () => layerBytes,
    log: { warn: (fields, message) => void world.logged.push({ fields, message }) },
  });
  onTestFinished(() => made.close());
  return made;
}

test("a machine that was suspended for a day costs exactly what one that was stopped for a day costs", async () => {
  const [asleep, off] = [await machine("asleep", "one"), await machine("off", "two")];
  await recorder(5 * MB).measureLayers();
  now += HOUR_MS;
  platform.machines.suspend("shop", asleep);
  await reach(asleep, "suspended");
  platform.machines.stop("shop", off);
  await reach(off, "stopped");
  now += DAY_MS;
  const { rows, total } = usage.report({ groupBy: "machine" });
  const [one, two] = rows;
  expect(one).toMatchObject({ machine: { id: asleep }, amounts: { suspended_ms: DAY_MS, stopped_ms: 0 } });
  expect(two).toMatchObject({ machine: { id: off }, amounts: { suspended_ms: 0, stopped_ms: DAY_MS } });
  expect(one?.cost).toEqual(two?.cost);
  expect(one?.amounts.running_ms).toBe(HOUR_MS);
  // The snapshot is reported, and free.
  expect(one?.amounts.snapshot_mb_ms).toBeGreaterThan(0);
  expect(one?.cost?.storage).toBeCloseTo(((1024 + 5) / 1024 / 30) * (25 / 24) * 0.15, 10);
  // What it saved: a day of one CPU and 128 MB.
  expect(one?.cost?.savedBySleeping).toBeCloseTo(86_400 * (0.00001 + 0.000002 / 8), 10);
  expect(total.cost?.total).toBeCloseTo(2 * (one?.cost?.total ?? 0), 12);
  expectWhole(join(world.folder, "hibernaut.db"), world.store.usage.open());
});

test("usage is grouped by app, machine and day, and counts up to now", async () => {
  const id = await machine("web", "data");
  platform.apps.create("blog");
  const { record } = await platform.machines.create("blog", { name: "post", config: SMALL, skipLaunch: true });
  now += DAY_MS + 2 * HOUR_MS;
  const byApp = usage.report({});
  expect(byApp.rows.map(({ app, amounts }) => [app, amounts.running_ms, amounts.stopped_ms])).toEqual([
    ["blog", 0, DAY_MS + 2 * HOUR_MS],
    ["shop", DAY_MS + 2 * HOUR_MS, 0],
  ]);
  expect(usage.report({ groupBy: "machine" }).rows.map(({ machine: which }) => which?.id)).toEqual([record.id, id]);
  const byDay = usage.report({ groupBy: "day", app: "shop", from: now - 3 * DAY_MS });
  expect(byDay.rows.map(({ day, amounts }) => [day, amounts.running_ms / HOUR_MS])).toEqual([
    ["2026-01-08", 0],
    ["2026-01-09", 0],
    ["2026-01-10", 16],
    ["2026-01-11", 10],
  ]);
  expect(byDay.total.amounts).toEqual(usage.report({ app: "shop" }).total.amounts);
  expect(usage.ofMachine("shop", id, {}).total.amounts).toEqual(byDay.total.amounts);
  // Closed and open intervals add up to the same.
  platform.machines.suspend("shop", id);
  await reach(id, "suspended");
  expect(usage.report({ app: "shop" }).total.amounts).toMatchObject({ running_ms: DAY_MS + 2 * HOUR_MS });
  expect(usage.report({ groupBy: "day" }).total.amounts).toEqual(usage.report({}).total.amounts);
});

test("destroyed machines and apps stay in the usage", async () => {
  const id = await machine("web", "data");
  now += HOUR_MS;
  platform.machines.destroy("shop", id, { force: true });
  await reach(id, "destroyed");
  now += HOUR_MS;
  await platform.volumes.destroyAll("shop");
  await platform.apps.delete("shop", { force: true });
  now += HOUR_MS;
  const { rows } = usage.report({ groupBy: "machine", app: "shop" });
  expect(rows).toMatchObject([
    { machine: { id, name: "web" }, amounts: { running_ms: HOUR_MS, volume_mb_ms: 1024 * HOUR_MS } },
    { machine: null, amounts: { running_ms: 0, volume_mb_ms: 1024 * HOUR_MS } },
  ]);
  expect(usage.ofMachine("shop", id, {}).total.amounts.running_ms).toBe(HOUR_MS);
  expect(() => usage.report({ app: "nothing" })).toThrow(/No usage of an app named nothing/);
  expect(() => usage.ofMachine("blog", id, {})).toThrow(/No usage of a machine/);
});

test("a range shows its days and no others", async () => {
  await machine("web", "data");
  now += 40 * DAY_MS;
  const january = { from: Date.parse("2026-01-01"), to: Date.parse("2026-02-01") };
  for (const groupBy of ["app", "machine", "day"] as const)
    expect(usage.report({ ...january, groupBy }).total.amounts.running_ms, groupBy).toBe(21 * DAY_MS + 16 * HOUR_MS);
  const before = { from: Date.parse("2026-01-01"), to: Date.parse("2026-01-10") };
  expect(usage.report({ ...before, groupBy: "machine" }).rows).toEqual([]);
});

test("counters continue after a restart, and never fall when the clock is set back", async () => {
  const id = await machine("web", "data");
  now += HOUR_MS;
  const registry = new Registry();
  usageMetrics(registry, usage, () => world.store.apps.list());
  const value = async () => {
    const text = await registry.metrics();
    return Number(/^hibernaut_usage_machine_seconds_total\{app="shop",meter="running"\} (\d+)$/m.exec(text)?.[1]);
  };
  expect(await value()).toBe(3600);
  now -= HOUR_MS / 2;
  await turn();
  expect(await value()).toBe(3600);
  now += HOUR_MS;
  await platform.close();
  platform = await startPlatform(world);
  platform.machines.suspend("shop", id);
  await reach(id, "suspended");
  now += HOUR_MS;
  await turn();
  expect(await value()).toBe(5400);
  expect(await registry.metrics()).toContain('hibernaut_usage_wakes_total{app="shop",kind="resume"} 0');
});

test("a request's wake counts, a person's start does not", async () => {
  const id = await machine("web", "data");
  for (const requester of [{ by: "proxy" as const }, {}]) {
    platform.machines.suspend("shop", id);
    await reach(id, "suspended");
    platform.machines.start("shop", id, requester);
    await reach(id, "running");
  }
  expect(usage.report({}).total.amounts).toMatchObject({ resumes: 1, cold_starts: 0 });
});

test("traffic that cannot be stored is stored later, and nothing is counted twice", async () => {
  const id = await machine("web", "data");
  const { addTraffic } = world.store.usage;
  const full = recorder();
  full.moved(id, { bytesIn: 1, bytesOut: 10 });
  world.store.usage.addTraffic = () => {
    throw new Error("the disk is full");
  };
  full.storeTraffic();
  expect(world.logged.at(-1)?.message).toMatch(/traffic of machines cannot be stored/);
  world.store.usage.addTraffic = addTraffic;
  full.moved(id, { bytesIn: 2, bytesOut: 20 });
  full.storeTraffic();
  full.storeTraffic();
  await full.close();
  expect(usage.report({}).total.amounts).toMatchObject({ bytes_in: 3, bytes_out: 30 });
});

test("a process that is really killed leaves every change with its interval", { timeout: 60_000 }, async () => {
  const file = join(await tempFolder("killed"), "hibernaut.db");
  for (let round = 0; round < 3; round += 1) {
    const child = spawn(process.execPath, [join(import.meta.dirname, "changing.ts"), file, String(round)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let printed = "";
    child.stdout.setEncoding("latin1");
    for await (const text of child.stdout) if ((printed += text).split("\n").length > 20 + round) break;
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
    const store = openStore(file);
    expectWhole(file, store.usage.open());
    store.close();
    const db = new Sqlite(file, { readonly: true });
    const { events, intervals } = db
      .prepare("SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM usage_intervals) AS intervals")
      .get() as { events: number; intervals: number };
    db.close();
    // Each machine has one event and no interval when it begins; from then on, one of each for every change.
    expect(intervals).toBe(events - (round + 1));
    expect(intervals).toBeGreaterThanOrEqual(20);
  }
});
