/**
 * What machines did, for charts. Its writers run inside the transaction of the change that they follow. Bounded: by number
 * for each machine, and by age.
 */
import type { MachineEvent, MachineRecord, MachineState } from "@hibernaut/domain/machine";
import {
  KEPT_CHANGES,
  likelyBefore,
  type StateChange,
  type StoredState,
  storedStateOf,
  type Wake,
} from "@hibernaut/domain/timeline";
import type { Database } from "better-sqlite3";
import type { KeptWarm, TimelineStore, WakeOfApp } from "./contract.ts";
import { atomic, withoutSync } from "./database.ts";

/** Rows older than this are dropped, in milliseconds: a day more than the longest chart. */
const KEPT_MS = 8 * 86_400_000;
/** Rows between two trims of the machine that the last one is about. */
const TRIM_EVERY = 100;
/** Of these many oldest rows, those that are too old go with each trim: more than came since the last one. */
const OLDEST = 1_000;

/** Follows every change of a machine. */
export interface TimelineWriter {
  machine(machine: MachineRecord, event: MachineEvent | undefined): void;
}

/** Returns the timeline of an open, migrated database. */
export function timelineStore(db: Database): TimelineStore & TimelineWriter {
  const last = db.prepare<[string], { state: StoredState }>(
    "SELECT state FROM machine_states WHERE machine = ? ORDER BY at DESC, seq DESC LIMIT 1",
  );
  const addState = db.prepare<StateChange & { machine: string }>(
    "INSERT INTO machine_states (machine, at, before, state) VALUES (@machine, @at, @before, @state)",
  );
  const addWake = db.prepare<Wake & { machine: string }>(
    "INSERT INTO machine_wakes (machine, at, kind, reason, duration_ms) VALUES (@machine, @at, @kind, @reason, @durationMs)",
  );
  // A machine that is gone by now has no chart.
  const addWarm = db.prepare<KeptWarm>(
    "INSERT INTO machine_warm (machine, from_ms, until_ms) SELECT id, @from, @until FROM machines WHERE id = @machine",
  );
  const trimStates = trimmer(db, "machine_states", "at");
  const trimWakes = trimmer(db, "machine_wakes", "at");
  const trimWarm = trimmer(db, "machine_warm", "until_ms");
  const states = db.prepare<[string, number], StateChange>(
    "SELECT at, before, state FROM machine_states WHERE machine = ? AND at > ? ORDER BY seq",
  );
  const wakes = db.prepare<[string, number, number], Wake>(`
    SELECT at, kind, reason, duration_ms AS durationMs FROM machine_wakes WHERE machine = ? AND at > ?
    ORDER BY at DESC, seq DESC LIMIT ?
  `);
  const countWakes = db.prepare<[string, number], { count: number }>(
    "SELECT count(*) AS count FROM machine_wakes WHERE machine = ? AND at > ?",
  );
  const warm = db.prepare<[string, number], { from: number; until: number }>(
    'SELECT from_ms AS "from", until_ms AS until FROM machine_warm WHERE machine = ? AND until_ms > ? ORDER BY until_ms, seq',
  );
  const wakesBefore = db.prepare<[number, number], WakeOfApp>(`
    SELECT machine_wakes.seq, app, at, kind, duration_ms AS durationMs
    FROM machine_wakes JOIN machines ON machines.id = machine_wakes.machine
    WHERE machine_wakes.seq < ? ORDER BY machine_wakes.seq DESC LIMIT ?
  `);
  const addAllWarm = atomic(db, (kept: readonly KeptWarm[]) => {
    for (const one of kept) trimWarm(one.machine, addWarm.run(one).lastInsertRowid, one.until);
  });

  return {
    machine({ id: machine, lastBoot }, event) {
      if (event === undefined || event.from === event.to) return;
      const at = Date.parse(event.at);
      const before = lastingOf(event.from) ?? last.get(machine)?.state ?? likelyBefore(event.from);
      const state = lastingOf(event.to);
      if (state !== undefined && state !== before)
        trimStates(machine, addState.run({ machine, at, before, state }).lastInsertRowid, at);
      if (event.type !== "started" || event.to !== "running" || lastBoot === null) return;
      const { kind, reason, duration_ms: durationMs } = lastBoot;
      const wake = { machine, at, kind, reason, durationMs: Math.round(durationMs) };
      trimWakes(machine, addWake.run(wake).lastInsertRowid, at);
    },
    lastState: (machine) => last.get(machine)?.state,
    states: (machine, since) => states.all(machine, since),
    wakes: (machine, since, limit) => wakes.all(machine, since, limit).toReversed(),
    countWakes: (machine, since) => countWakes.get(machine, since)?.count ?? 0,
    warm: (machine, since) => warm.all(machine, since),
    wakesBefore: (sequence, limit) => wakesBefore.all(sequence, limit),
    // A power cut may take a stretch of warmth from a chart, and nothing else.
    addWarm: (kept) => withoutSync(db, () => addAllWarm(kept)),
  };
}

/**
 * What a machine does in a state; undefined in a passing state in which it does what it did before, and once it is
 * destroyed. A wake asks this, so it asks the database only where the answer is there.
 */
function lastingOf(state: MachineState | null): StoredState | undefined {
  if (state === null) return "stopped";
  const shown = storedStateOf(state, "stopped");
  // It depends on what was before.
  return shown === null || storedStateOf(state, "running") !== shown ? undefined : shown;
}

/** Returns a function that drops rows now and then, after one was added. */
function trimmer(db: Database, table: string, time: string) {
  const byNumber = db.prepare<[string]>(`
    DELETE FROM ${table} WHERE seq IN
      (SELECT seq FROM ${table} WHERE machine = ? ORDER BY ${time} DESC, seq DESC LIMIT -1 OFFSET ${KEPT_CHANGES})
  `);
  const byAge = db.prepare<[number]>(`
    DELETE FROM ${table} WHERE seq IN (SELECT seq FROM ${table} ORDER BY seq LIMIT ${OLDEST}) AND ${time} < ?
  `);
  return (machine: string, row: number | bigint, at: number): void => {
    if (Number(row) % TRIM_EVERY !== 0) return;
    byNumber.run(machine);
    byAge.run(at - KEPT_MS);
  };
}
