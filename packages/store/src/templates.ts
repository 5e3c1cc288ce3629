/** Templates of apps in the database. */
import type { TemplateRecord } from "@hibernaut/domain/template";
import type { Database } from "better-sqlite3";
import type { TemplateStore } from "./contract.ts";
import { atomic } from "./database.ts";
import { factOf, type OutboxWriter } from "./outbox.ts";
import type { UsageMeter } from "./usage-meter.ts";

/** `machine` is JSON, and `copied` 0 or 1. */
type Row = Omit<TemplateRecord, "machine" | "copied"> & { machine: string; copied: number };

/** Returns the repository of templates in an open, migrated database. */
export function templateStore(
  db: Database,
  { outbox, usage }: { outbox: OutboxWriter; usage: Pick<UsageMeter, "template" | "templateRemoved"> },
): TemplateStore {
  const columns =
    "id, app, name, created_at AS createdAt, size_bytes AS sizeBytes, warm_pool AS warmPool, copied, machine";
  const insert = db.prepare<Row>(`
    INSERT INTO templates (id, app, name, created_at, size_bytes, warm_pool, copied, machine)
    SELECT @id, @app, @name, @createdAt, @sizeBytes, @warmPool, @copied, @machine WHERE EXISTS (SELECT 1 FROM apps WHERE name = @app)
    ON CONFLICT DO NOTHING
  `);
  const get = db.prepare<[string], Row>(`SELECT ${columns} FROM templates WHERE id = ?`);
  const listAll = db.prepare<[], Row>(`SELECT ${columns} FROM templates ORDER BY seq`);
  const listApp = db.prepare<[string], Row>(`SELECT ${columns} FROM templates WHERE app = ? ORDER BY seq`);
  const setPool = db.prepare<[number, string]>("UPDATE templates SET warm_pool = ? WHERE id = ?");
  const remove = db.prepare<[string]>("DELETE FROM templates WHERE id = ?");
  /** The host that made it tells of it: a copy is the same one. */
  const tell = (what: "created" | "deleted", { id, app, name, sizeBytes, machine, copied }: TemplateRecord) => {
    if (copied === true) return;
    outbox.add(factOf(`template.${what}`, app, { id, name, size_bytes: sizeBytes, machine_id: machine.id }));
  };
  return {
    insert: atomic(db, (template: TemplateRecord) => {
      if (insert.run(rowOf(template)).changes === 0) return false;
      usage.template(template);
      tell("created", template);
      return true;
    }),
    get(id) {
      const row = get.get(id);
      return row && recordOf(row);
    },
    setPool: (id, size) => setPool.run(size, id).changes === 1,
    list: (app) => (app === undefined ? listAll.all() : listApp.all(app)).map(recordOf),
    remove: atomic(db, (template: TemplateRecord) => {
      if (remove.run(template.id).changes === 0) return;
      usage.templateRemoved(template.id);
      tell("deleted", template);
    }),
  };
}

function rowOf({ machine, copied, ...template }: TemplateRecord): Row {
  return { ...template, copied: Number(copied === true), machine: JSON.stringify(machine) };
}

function recordOf({ machine, copied, ...row }: Row): TemplateRecord {
  return {
    ...row,
    ...(copied === 1 && { copied: true as const }),
    machine: JSON.parse(machine) as TemplateRecord["machine"],
  };
}
