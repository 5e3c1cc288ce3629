/** Hostnames of apps in the database. */
import type { Database } from "better-sqlite3";
import type { HostnameStore } from "./contract.ts";

/** Returns the repository of hostnames in an open, migrated database. */
export function hostnameStore(db: Database): HostnameStore {
  const list = db.prepare<[], { name: string; app: string }>("SELECT name, app FROM hostnames ORDER BY name");
  const insert = db.prepare<{ name: string; app: string }>(
    "INSERT INTO hostnames (name, app) VALUES (@name, @app) ON CONFLICT DO NOTHING",
  );
  const remove = db.prepare<{ name: string; app: string }>("DELETE FROM hostnames WHERE name = @name AND app = @app");
  return {
    list: () => list.all(),
    insert: (name, app) => insert.run({ name, app }).changes === 1,
    remove: (name, app) => remove.run({ name, app }).changes === 1,
  };
}
