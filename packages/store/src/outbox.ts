/**
 * The outbox: what the stream of events tells, written in the transaction of the change itself, so that nothing is told
 * that did not happen, and nothing that happened is lost by a crash.
 */
import type { StreamEvent, StreamFact } from "@hibernaut/domain/stream-event";
import type { Database } from "better-sqlite3";
import type { OutboxStore, StreamQuery } from "./contract.ts";

/** Events kept: days of a busy host, and some 50 MB. A reader who was away for longer is told of the gap. */
const KEPT_STREAM_EVENTS = 100_000;
/** Events between two trims. */
const TRIM_EVERY = 1_000;

interface Row {
  sequence: number;
  at: string;
  type: string;
  app: string | null;
  machine: string | null;
  data: string;
}

/** Where the other parts of the store put their events, inside of their transactions. */
export interface OutboxWriter {
  /** Returns the event's sequence number. */
  add(fact: StreamFact): number;
}

/** Returns an event of now, about anything but a machine. */
export function factOf(type: string, app: string | null, data: StreamFact["data"] = {}): StreamFact {
  return { type, at: new Date().toISOString(), app, machine: null, data };
}

/** Returns the outbox of an open, migrated database. */
export function outboxStore(db: Database): OutboxStore & OutboxWriter {
  const add = db.prepare<Omit<Row, "sequence">>(
    "INSERT INTO outbox (at, type, app, machine_id, data) VALUES (@at, @type, @app, @machine, @data)",
  );
  const trim = db.prepare<[number]>("DELETE FROM outbox WHERE sequence <= ?");
  const columns = "sequence, at, type, app, machine_id AS machine, data";
  const after = db.prepare<[number, number], Row>(
    `SELECT ${columns} FROM outbox WHERE sequence > ? ORDER BY sequence LIMIT ?`,
  );
  const before = db.prepare<{ sequence: number; app: string | null; machine: string | null; limit: number }, Row>(`
    SELECT ${columns} FROM outbox WHERE sequence < @sequence AND (@app IS NULL OR app = @app) AND (@machine IS NULL OR machine_id = @machine)
    ORDER BY sequence DESC LIMIT @limit
  `);
  const oldest = db.prepare<[], { sequence: number }>("SELECT min(sequence) AS sequence FROM outbox");
  // Counts what was ever added, also what was trimmed since.
  const newest = db.prepare<[], { sequence: number }>(
    "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox'), 0) AS sequence",
  );
  const listeners = new Set<() => void>();
  let told = true;
  const tell = () => {
    told = true;
    if (!db.open) return;
    for (const listener of listeners) listener();
  };

  return {
    add({ at, type, app, machine, data }) {
      const { lastInsertRowid } = add.run({ at, type, app, machine, data: JSON.stringify(data) });
      const sequence = Number(lastInsertRowid);
      if (sequence % TRIM_EVERY === 0) trim.run(sequence - KEPT_STREAM_EVENTS);
      // Later, when the transaction is over: transactions are synchronous. If it failed, there is nothing to read.
      if (told) setImmediate(tell);
      told = false;
      return sequence;
    },
    after: (sequence, limit) => after.all(sequence, limit).map(toEvent),
    before: (sequence, { app = null, machine = null }: StreamQuery, limit) =>
      before.all({ sequence, app, machine, limit }).map(toEvent),
    oldest: () => oldest.get()?.sequence ?? undefined,
    newest: () => newest.get()?.sequence ?? 0,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function toEvent({ data, ...row }: Row): StreamEvent {
  return { ...row, data: JSON.parse(data) as Record<string, unknown> };
}
