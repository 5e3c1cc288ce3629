/** Apps in the database. */
import type { Database } from "better-sqlite3";
import type { AppRecord } from "../domain/machine.ts";
import type { AppStore } from "./contract.ts";
import type { OutboxWriter } from "./outbox.ts";
import { factOf } from "./facts.ts";

/** Returns the repository of apps in an open, migrated database. */
export function appStore(db: Database, outbox: OutboxWriter): AppStore {
  const insert = db.prepare<AppRecord>(
    "INSERT INTO apps (name, created_at) VALUES (@name, @createdAt) ON CONFLICT DO NOTHING",
  );
  const get = db.prepare<[string], AppRecord>("SELECT name, created_at AS createdAt FROM apps WHERE name = ?");
  const list = db.prepare<[], AppRecord>("SELECT name, created_at AS createdAt FROM apps ORDER BY name");
  // One statement, so that no machine or volume can be added between the check and the deletion.
  const remove = db.prepare<{ name: string }>(`
    DELETE FROM apps WHERE name = @name
    AND NOT EXISTS (SELECT 1 FROM machines WHERE app = @name AND state <> 'destroyed')
    AND NOT EXISTS (SELECT 1 FROM volumes WHERE app = @name)
  `);

  const insertBoth = db.transaction((app: AppRecord): boolean => {
    if (insert.run(app).changes === 0) return false;
    outbox.add(factOf("app.created", app.name));
    return true;
  });
  const removeBoth = db.transaction((name: string): boolean => {
    if (remove.run({ name }).changes === 0) return false;
    outbox.add(factOf("app.deleted", name));
    return true;
  });

  return {
    insert: (app) => insertBoth.immediate(app),
    get: (name) => get.get(name),
    list: () => list.all(),
    delete: (name) => removeBoth.immediate(name),
  };
}
