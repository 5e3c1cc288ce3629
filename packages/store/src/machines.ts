/** Machines and their events in the database. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineEvent, MachineRecord, MachineState } from "@hibernaut/domain/machine";
import { machineFact } from "@hibernaut/domain/stream-event";
import type { Database } from "better-sqlite3";
import type { MachineStore } from "./contract.ts";
import { atomic, withoutSync } from "./database.ts";
import type { OutboxWriter } from "./outbox.ts";
import type { TimelineWriter } from "./timeline.ts";
import type { UsageMeter } from "./usage-meter.ts";

/** Events kept per machine: enough to explain any state, and bounded even if a machine sleeps and wakes every minute. */
export const KEPT_EVENTS = 1000;

/** Events between two trims. Trimming after every event would double the cost of a transition. */
const TRIM_EVERY = 100;

/** A machine's row: columns for what queries need, JSON for the rest. */
export interface MachineRow {
  id: string;
  app: string;
  name: string;
  state: string;
  document: string;
}

interface EventRow {
  at: string;
  type: string;
  fromState: string | null;
  toState: string;
  details: string;
}

/** Columns of {@link MachineRow}. */
const COLUMNS = "id, app, name, state, document";
/** The machines that are not destroyed, oldest first. */
export const LIST_MACHINES = `SELECT ${COLUMNS} FROM machines WHERE state <> 'destroyed' ORDER BY seq`;

/** What follows each change, in its transaction. */
interface Followers {
  usage: Pick<UsageMeter, "machine">;
  outbox: OutboxWriter;
  timeline: TimelineWriter;
}

/** Returns the repository of machines in an open, migrated database. */
export function machineStore(db: Database, { usage, outbox, timeline }: Followers): MachineStore {
  const insert = db.prepare<MachineRow>(
    `INSERT INTO machines (${COLUMNS}) VALUES (@id, @app, @name, @state, @document) ON CONFLICT DO NOTHING`,
  );
  const update = db.prepare<MachineRow>(
    "UPDATE machines SET app = @app, name = @name, state = @state, document = @document WHERE id = @id",
  );
  const remove = db.prepare<[string]>("DELETE FROM machines WHERE id = ?");
  const get = db.prepare<[string], MachineRow>(`SELECT ${COLUMNS} FROM machines WHERE id = ?`);
  const listAll = db.prepare<[], MachineRow>(LIST_MACHINES);
  const listApp = db.prepare<[string], MachineRow>(
    `SELECT ${COLUMNS} FROM machines WHERE app = ? AND state <> 'destroyed' ORDER BY seq`,
  );
  const events = eventStore(db);

  // Nobody knows of a machine in a pool until it is taken.
  const tell = (machine: MachineRecord, event: MachineEvent) => {
    if (machine.pooled !== true) outbox.add(machineFact(machine, event));
  };

  const insertBoth = atomic(db, (machine: MachineRecord, event: MachineEvent, history: readonly MachineEvent[]) => {
    if (insert.run(toRow(machine)).changes === 0) return false;
    for (const earlier of history) events.add(machine.id, earlier);
    events.add(machine.id, event);
    tell(machine, event);
    timeline.machine(machine, event);
    usage.machine(machine, event);
    return true;
  });
  const updateBoth = atomic(db, (machine: MachineRecord, event: MachineEvent | undefined): void => {
    if (update.run(toRow(machine)).changes === 0) throw new Error(`machine ${machine.id} is not in the database`);
    if (event) {
      events.add(machine.id, event);
      tell(machine, event);
      timeline.machine(machine, event);
    }
    usage.machine(machine, event);
  });

  return {
    insert(machine, event, history = []) {
      try {
        return insertBoth(machine, event, history);
      } catch (error) {
        if ((error as { code?: string }).code !== "SQLITE_CONSTRAINT_FOREIGNKEY") throw error;
        throw new HibernautError(
          "not_found",
          `There is no app ${machine.app}: it was deleted meanwhile. Create it again first.`,
          {
            app: machine.app,
          },
        );
      }
    },
    update(machine, event, { unsynced } = { unsynced: false }) {
      if (unsynced) withoutSync(db, () => updateBoth(machine, event));
      else updateBoth(machine, event);
    },
    remove: atomic(db, (machine: MachineRecord, event: MachineEvent) => {
      tell(machine, event);
      usage.machine({ ...machine, state: "destroyed" }, event);
      remove.run(machine.id);
    }),
    get(id) {
      const row = get.get(id);
      return row && fromRow(row);
    },
    list: (app) => (app === undefined ? listAll.all() : listApp.all(app)).map(fromRow),
    events: (id, limit) => events.newest(id, limit),
  };
}

function eventStore(db: Database) {
  const add = db.prepare<EventRow & { machineId: string }>(`
    INSERT INTO events (machine_id, at, type, from_state, to_state, details)
    VALUES (@machineId, @at, @type, @fromState, @toState, @details)
  `);
  const newest = db.prepare<[string, number], EventRow>(`
    SELECT at, type, from_state AS fromState, to_state AS toState, details
    FROM events WHERE machine_id = ? ORDER BY seq DESC LIMIT ?
  `);
  const trim = db.prepare<{ machineId: string }>(`
    DELETE FROM events WHERE machine_id = @machineId AND seq <=
      (SELECT seq FROM events WHERE machine_id = @machineId ORDER BY seq DESC LIMIT 1 OFFSET ${KEPT_EVENTS})
  `);

  return {
    add(machineId: string, event: MachineEvent): void {
      const { at, type, from: fromState, to: toState } = event;
      const { lastInsertRowid } = add.run({
        machineId,
        at,
        type,
        fromState,
        toState,
        details: JSON.stringify(event.details),
      });
      if (Number(lastInsertRowid) % TRIM_EVERY === 0) trim.run({ machineId });
    },
    newest: (machineId: string, limit: number): MachineEvent[] => newest.all(machineId, limit).map(toEvent),
  };
}

function toRow(machine: MachineRecord): MachineRow {
  const { id, app, name, state, ...rest } = machine;
  return { id, app, name, state, document: JSON.stringify(rest) };
}

/** The record of a row. */
export function fromRow({ document, ...columns }: MachineRow): MachineRecord {
  return { ...columns, ...JSON.parse(document) } as MachineRecord;
}

function toEvent(row: EventRow): MachineEvent {
  return {
    at: row.at,
    type: row.type,
    from: row.fromState as MachineState | null,
    to: row.toState as MachineState,
    details: JSON.parse(row.details) as Record<string, unknown>,
  };
}
