/** The drain in the database: one row while there is one. */
import type { Database } from "better-sqlite3";
import type { DrainRecord } from "../domain/drain.ts";
import type { DrainStore } from "./contract.ts";

/** Returns the repository of the drain in an open, migrated database. */
export function drainStore(db: Database): DrainStore {
  const get = db.prepare<[], { document: string }>("SELECT document FROM drain WHERE id = 1");
  const set = db.prepare<[string]>("INSERT OR REPLACE INTO drain (id, document) VALUES (1, ?)");
  const clear = db.prepare("DELETE FROM drain");
  return {
    get() {
      const row = get.get();
      return row && (JSON.parse(row.document) as DrainRecord);
    },
    set: (drain) => void set.run(JSON.stringify(drain)),
    clear: () => void clear.run(),
  };
}
