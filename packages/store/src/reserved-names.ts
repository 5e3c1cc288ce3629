/** The names at which people have signed in, in the database: no app gets them. */
import type { Database } from "better-sqlite3";
import type { ReservedNameStore } from "./contract.ts";
import { atomic } from "./database.ts";

/** Returns the repository of reserved names in an open, migrated database. */
export function reservedNameStore(db: Database): ReservedNameStore {
  const list = db.prepare<[], { name: string }>("SELECT name FROM reserved_names ORDER BY name");
  const add = db.prepare<[string, number]>(
    "INSERT INTO reserved_names (name, used_at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET used_at = excluded.used_at",
  );
  const forget = db.prepare<[number]>(
    "DELETE FROM reserved_names WHERE name IN (SELECT name FROM reserved_names ORDER BY used_at DESC, name LIMIT -1 OFFSET ?)",
  );
  return {
    list: () => list.all().map(({ name }) => name),
    note: atomic(db, (name: string, at: number, most: number) => {
      add.run(name, at);
      forget.run(most);
    }),
  };
}
