#!/usr/bin/env node
/**
 * `npm run bench:usage` measures how long the platform takes to answer what 10,000 machines of 1,000 apps used in a year
 * in which each was awake every day, and what a transition pays for being metered. Prints medians and spread, records
 * every sample in `bench/results/usage.json`, and exits with code 1 if a goal is missed.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AMOUNTS } from "@hibernaut/domain/usage";
import { Usage } from "@hibernaut/metering";
import { openStore } from "@hibernaut/store/open";
import Sqlite from "better-sqlite3";
import { goalsMet } from "./lib/goals.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { round, summaries } from "./lib/stats.mjs";

const MACHINES = 10_000;
const APPS = 1000;
const SAMPLES = 10;
const DAY_MS = 86_400_000;
/** The CPU time of any answer, with its JSON: on a host that has nothing else to do, the time until it is there. */
const GOALS = { answer_cpu_ms: 1000 };
/** A year that begins and ends in the middle of a month: the most rows to read. */
const FROM = Date.UTC(2025, 0, 16);
const TO = Date.UTC(2026, 0, 16);
const NOW = Date.UTC(2026, 0, 20);
const PRICES = { currency: "EUR", cpu_second: 0.00001, memory_gb_second: 0.000002, storage_gb_month: 0.15 };

const about = environment();
const folder = mkdtempSync(join(tmpdir(), "hibernaut-bench-"));
const file = join(folder, "hibernaut.db");
try {
  let now = NOW;
  const store = openStore(file, () => now);
  fill(file);
  const usage = new Usage({ store: store.usage, prices: PRICES, now: () => NOW });
  const range = { from: FROM, to: TO };
  /** @type {Record<string, () => unknown>} */
  const questions = {
    by_app: () => usage.report(range),
    by_machine: () => usage.report({ ...range, groupBy: "machine" }),
    by_day: () => usage.report({ ...range, groupBy: "day" }),
    one_app_by_machine: () => usage.report({ ...range, groupBy: "machine", app: "app-7" }),
    one_machine: () => usage.ofMachine("app-7", idOf(7), range),
    metrics: () => [...usage.totals()],
  };
  /** @type {Record<string, number[]>} */
  const samples = {};
  for (const [name, ask] of Object.entries(questions)) {
    const taken = Array.from({ length: SAMPLES }, () => timed(() => JSON.stringify(ask())));
    samples[`${name}_ms`] = taken.map(({ ms }) => ms);
    samples[`${name}_cpu_ms`] = taken.map(({ cpuMs }) => cpuMs);
  }
  samples.transition_ms = transitions(store, (ms) => (now += ms));
  store.close();

  const results = summaries(samples, 1);
  console.table(results);
  const slowest = Math.max(...Object.keys(questions).map((name) => results[`${name}_cpu_ms`]?.max ?? 0));
  const bytes = statSync(file).size;
  const met = goalsMet({ answer_cpu_ms: slowest }, GOALS);
  console.log(`${MACHINES} machines take ${round(bytes / 1024 / 1024, 0)} MB for the year.`);
  writeResult("usage", { ...about, goals: GOALS, machines: MACHINES, apps: APPS, bytes, results, samples });
  process.exitCode = met ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** @param {() => unknown} work */
function timed(work) {
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  work();
  const { user, system } = process.cpuUsage(cpu);
  return { ms: round(performance.now() - began, 1), cpuMs: round((user + system) / 1000, 1) };
}

/** @param {number} index */
function idOf(index) {
  return index.toString(16).padStart(14, "0");
}

/**
 * What the year left in the database. Written directly: ten million transitions would take an hour.
 *
 * @param {string} path
 */
function fill(path) {
  const db = new Sqlite(path);
  db.pragma("synchronous = OFF");
  const columns = AMOUNTS.join(", ");
  const add = db.prepare(
    `INSERT INTO usage_sums (grain, period, name, ${columns}) VALUES (?, ?, ?, ${AMOUNTS.map(() => "1000").join(", ")})`,
  );
  /** @type {number[]} */
  const periods = [];
  for (let at = Date.UTC(2025, 0, 1); at < NOW; at += DAY_MS) {
    const date = new Date(at);
    const month = date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
    if (date.getUTCDate() === 1) periods.push(month);
    periods.push(month * 100 + date.getUTCDate());
  }
  db.transaction(() => {
    for (const period of periods) {
      add.run("all", period, "");
      for (let index = 0; index < APPS; index += 1) add.run("app", period, `app-${index}`);
      for (let index = 0; index < MACHINES; index += 1) add.run("machine", period, idOf(index));
    }
    for (let index = 0; index < APPS; index += 1) add.run("app", 0, `app-${index}`);
    const name = db.prepare("INSERT INTO usage_names VALUES (?, ?, ?)");
    // Asleep since the middle of the year: open intervals are the longest that readers cut into days.
    const open = db.prepare(
      "INSERT INTO usage_open VALUES (?, ?, ?, 'suspended', ?, 1, 256, 5, 0, 100, 'suspended', 0)",
    );
    for (let index = 0; index < MACHINES; index += 1) {
      name.run(idOf(index), `app-${index % APPS}`, `machine-${index}`);
      open.run(idOf(index), `app-${index % APPS}`, idOf(index), Date.UTC(2025, 6, 1));
    }
  })();
  db.close();
}

/**
 * How long it takes to store a transition, with its event and its usage, in this full database.
 *
 * @param {import("@hibernaut/store").Store} store
 * @param {(ms: number) => void} pass
 */
function transitions(store, pass) {
  const at = new Date(NOW).toISOString();
  store.apps.insert({ name: "app-0", createdAt: at });
  const config = { image: "app:1", guest: { cpus: 1, memory_mb: 256 } };
  const record = /** @type {import("@hibernaut/domain/machine").MachineRecord} */ (
    /** @type {unknown} */ ({
      id: "f".repeat(14),
      app: "app-0",
      name: "bench",
      state: "created",
      config,
      snapshot: null,
    })
  );
  store.machines.insert(record, { at, type: "create", from: null, to: "created", details: {} });
  return Array.from({ length: 200 }, (_, count) => {
    const state = count % 2 === 0 ? "running" : "suspended";
    pass(1000);
    const event = { at, type: "started", from: null, to: state, details: {} };
    return timed(() =>
      store.machines.update(
        { ...record, state },
        /** @type {import("@hibernaut/domain/machine").MachineEvent} */ (event),
      ),
    ).ms;
  });
}
