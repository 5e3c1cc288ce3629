/** The drain in the database: one row while there is one. */
import type { DrainRecord } from "@hibernaut/domain/drain";
import type { Database } from "better-sqlite3";
import type { DrainStore } from "./contract.ts";
import { atomic } from "./database.ts";
import { factOf, type OutboxWriter } from "./outbox.ts";

/** Returns the repository of the drain in an open, migrated database. */
export function drainStore(db: Database, outbox: OutboxWriter): DrainStore {
  const get = db.prepare<[], { document: string }>("SELECT document FROM drain WHERE id = 1");
  const set = db.prepare<[string]>("INSERT OR REPLACE INTO drain (id, document) VALUES (1, ?)");
  const clear = db.prepare("DELETE FROM drain");
  return {
    get() {
      const row = get.get();
      return row && (JSON.parse(row.document) as DrainRecord);
    },
    set: atomic(db, (drain: DrainRecord) => {
      set.run(JSON.stringify(drain));
      const { suspend, deadline, completedAt } = drain;
      outbox.add(factOf(`platform.${completedAt === null ? "draining" : "drained"}`, null, { suspend, deadline }));
    }),
    clear: atomic(db, () => {
      if (clear.run().changes > 0) outbox.add(factOf("platform.undrained", null));
    }),
  };
}
