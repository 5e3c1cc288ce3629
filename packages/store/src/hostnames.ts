/** Hostnames of apps in the database. */
import type { Database } from "better-sqlite3";
import type { HostnameStore } from "./contract.ts";
import { atomic } from "./database.ts";
import { factOf, type OutboxWriter } from "./outbox.ts";

/** Returns the repository of hostnames in an open, migrated database. */
export function hostnameStore(db: Database, outbox: OutboxWriter): HostnameStore {
  const list = db.prepare<[], { name: string; app: string }>("SELECT name, app FROM hostnames ORDER BY name");
  const insert = db.prepare<{ name: string; app: string }>(
    "INSERT INTO hostnames (name, app) VALUES (@name, @app) ON CONFLICT DO NOTHING",
  );
  const remove = db.prepare<{ name: string; app: string }>("DELETE FROM hostnames WHERE name = @name AND app = @app");
  const change = atomic(db, (how: "added" | "removed", name: string, app: string): boolean => {
    const changed = (how === "added" ? insert : remove).run({ name, app }).changes === 1;
    if (changed) outbox.add(factOf(`hostname.${how}`, app, { hostname: name }));
    return changed;
  });
  return {
    list: () => list.all(),
    insert: (name, app) => change("added", name, app),
    remove: (name, app) => change("removed", name, app),
  };
}
