#!/usr/bin/env node
/**
 * `npm run bench:timeline` measures how long the platform takes to answer what 500 machines did that fell asleep and woke
 * every ten minutes for a week, and for how much of that it does nothing else. Prints medians and spread, records every
 * sample in `bench/results/timeline.json`, and exits with code 1 if a goal is missed.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "@hibernaut/store/open";
import Sqlite from "better-sqlite3";
import { Timelines } from "../packages/machines/src/resources/timelines.ts";
import { goalsMet } from "./lib/goals.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { round, summaries } from "./lib/stats.mjs";

const MACHINES = 500;
const SAMPLES = 10;
const DAYS = 7;
const TURN_MS = 10 * 60_000;
/** Of each turn, a machine sleeps so long, the first half of it warm. */
const ASLEEP_MS = 8 * 60_000;
/** CPU time of the answer for a day, with its JSON, and the most of it that nothing else can interrupt. */
const GOALS = { day_cpu_ms: 500, longest_turn_cpu_ms: 100 };
const NOW = Date.UTC(2026, 0, 20, 12);

const about = environment();
const folder = mkdtempSync(join(tmpdir(), "hibernaut-bench-"));
const file = join(folder, "hibernaut.db");
try {
  const store = openStore(file);
  const records = fill(file);
  const controllers = {
    all: () => records.map((record) => ({ record })),
    warm: { since: () => undefined },
    warmHistory: { write() {} },
  };
  const timelines = new Timelines(store.timeline, /** @type {any} */ (controllers), () => NOW);
  const all = () => true;
  /** @type {Record<string, () => Promise<unknown>>} */
  const questions = {
    day: () => timelines.read(all, 24),
    week: () => timelines.read(all, 168),
    one_app: () => timelines.read((app) => app === "app-7", 24),
    wakes_day: () => timelines.wakes(all, 24),
    wakes_week: () => timelines.wakes(all, 168),
  };
  /** @type {Record<string, number[]>} */
  const samples = {};
  for (const [name, ask] of Object.entries(questions)) {
    const taken = [];
    for (let sample = 0; sample < SAMPLES; sample += 1) taken.push(await timed(ask));
    samples[`${name}_ms`] = taken.map(({ ms }) => ms);
    samples[`${name}_cpu_ms`] = taken.map(({ cpuMs }) => cpuMs);
    samples[`${name}_longest_turn_cpu_ms`] = taken.map(({ turnMs }) => turnMs);
  }
  store.close();

  const results = summaries(samples, 1);
  console.table(results);
  const figures = {
    day_cpu_ms: results.day_cpu_ms?.median ?? Number.NaN,
    longest_turn_cpu_ms: Math.max(
      ...Object.keys(questions).map((name) => results[`${name}_longest_turn_cpu_ms`]?.median ?? 0),
    ),
  };
  const met = goalsMet(figures, GOALS);
  const bytes = statSync(file).size;
  console.log(`${MACHINES} machines take ${round(bytes / 1024 / 1024, 0)} MB.`);
  writeResult("timeline", { ...about, goals: GOALS, machines: MACHINES, bytes, figures, results, samples });
  process.exitCode = met ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** @param {() => Promise<unknown>} ask */
async function timed(ask) {
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  let longest = 0;
  let last = cpu;
  let over = false;
  // Whatever else the event loop has to do has its turn as often as this. CPU time, because the host may be busy.
  const turn = () => {
    const { user, system } = process.cpuUsage(last);
    longest = Math.max(longest, user + system);
    last = process.cpuUsage();
    if (!over) setImmediate(turn);
  };
  setImmediate(turn);
  JSON.stringify(await ask());
  over = true;
  turn();
  const { user, system } = process.cpuUsage(cpu);
  return {
    ms: round(performance.now() - began, 1),
    cpuMs: round((user + system) / 1000, 1),
    turnMs: round(longest / 1000, 1),
  };
}

/**
 * Writes what a week would have written, and returns the records of the machines.
 *
 * @param {string} path
 */
function fill(path) {
  const db = new Sqlite(path);
  const createdAt = new Date(NOW - 30 * 86_400_000).toISOString();
  const app = db.prepare("INSERT INTO apps (name, created_at) VALUES (?, ?)");
  const machine = db.prepare("INSERT INTO machines (id, app, name, state, document) VALUES (?, ?, ?, 'running', '{}')");
  const state = db.prepare("INSERT INTO machine_states (machine, at, before, state) VALUES (?, ?, ?, ?)");
  const warm = db.prepare("INSERT INTO machine_warm (machine, from_ms, until_ms) VALUES (?, ?, ?)");
  const wake = db.prepare(
    "INSERT INTO machine_wakes (machine, at, kind, reason, duration_ms) VALUES (?, ?, 'resume', 'snapshot_used', ?)",
  );
  const machines = Array.from({ length: MACHINES }, (_, index) => ({
    id: index.toString(16).padStart(14, "0"),
    app: `app-${index % 50}`,
    name: `machine-${index}`,
    state: "running",
    createdAt,
  }));
  db.transaction(() => {
    for (let index = 0; index < 50; index += 1) app.run(`app-${index}`, createdAt);
    for (const each of machines) machine.run(each.id, each.app, each.name);
    for (let at = NOW - DAYS * 86_400_000; at < NOW; at += TURN_MS)
      for (const [index, { id }] of machines.entries()) {
        const asleep = at + index;
        const awake = asleep + ASLEEP_MS;
        state.run(id, asleep, "running", "suspended");
        warm.run(id, asleep, asleep + ASLEEP_MS / 2);
        state.run(id, awake, "suspended", "running");
        wake.run(id, awake, 100 + (index % 50));
      }
  })();
  db.close();
  return machines;
}
