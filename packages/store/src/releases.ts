/** Releases of apps in the database. */
import type { ReleaseRecord } from "@hibernaut/domain/machine";
import type { Database } from "better-sqlite3";
import type { ReleaseStore } from "./contract.ts";
import { atomic } from "./database.ts";
import { factOf, type OutboxWriter } from "./outbox.ts";

/** Releases kept per app: enough to roll back to, and bounded even if every commit is deployed. */
const KEPT = 100;

interface Row {
  version: number;
  status: string;
  image: string;
  digest: string;
  description: string;
  createdAt: string;
}

/** Returns the repository of releases in an open, migrated database. */
export function releaseStore(db: Database, outbox: OutboxWriter): ReleaseStore {
  const columns = "version, status, image, digest, description, created_at AS createdAt";
  const insert = db.prepare<Omit<Row, "version"> & { app: string }>(`
    INSERT INTO releases (app, version, status, image, digest, description, created_at)
    SELECT @app, coalesce(max(version), 0) + 1, @status, @image, @digest, @description, @createdAt
    FROM releases WHERE app = @app
  `);
  const last = db.prepare<[string], Row>(`SELECT ${columns} FROM releases WHERE app = ? ORDER BY version DESC LIMIT 1`);
  const list = db.prepare<[string, number], Row>(
    `SELECT ${columns} FROM releases WHERE app = ? ORDER BY version DESC LIMIT ?`,
  );
  const update = db.prepare<{ app: string; version: number; status: string; description: string }>(
    "UPDATE releases SET status = @status, description = @description WHERE app = @app AND version = @version",
  );
  const trim = db.prepare<{ app: string }>(`
    DELETE FROM releases WHERE app = @app
    AND version <= (SELECT max(version) FROM releases WHERE app = @app) - ${KEPT}
  `);
  const tell = (app: string, { version, status, description }: Pick<Row, "version" | "status" | "description">) =>
    outbox.add(factOf(`release.${status}`, app, { version, description }));
  const get = db.prepare<[string, number], Row>(`SELECT ${columns} FROM releases WHERE app = ? AND version = ?`);
  const replace = db.prepare<Row & { app: string }>(`
    INSERT OR REPLACE INTO releases (app, version, status, image, digest, description, created_at)
    VALUES (@app, @version, @status, @image, @digest, @description, @createdAt)
  `);
  const remove = db.prepare<[string, number]>("DELETE FROM releases WHERE app = ? AND version = ?");
  return {
    add: atomic(db, (app: string, release: Omit<ReleaseRecord, "version">) => {
      insert.run({ app, ...release });
      trim.run({ app });
      const added = last.get(app) as ReleaseRecord;
      tell(app, added);
      return added;
    }),
    list: (app, limit) => list.all(app, limit) as ReleaseRecord[],
    update: atomic(db, (app: string, version: number, status: Row["status"], description: string) => {
      if (update.run({ app, version, status, description }).changes === 0) return false;
      tell(app, { version, status, description });
      return true;
    }),
    put: atomic(db, (app: string, release: ReleaseRecord) => {
      const before = get.get(app, release.version);
      if (before?.status === release.status && before.description === release.description) return false;
      replace.run({ app, ...release });
      tell(app, release);
      return true;
    }),
    remove: (app, version) => remove.run(app, version).changes === 1,
  };
}
