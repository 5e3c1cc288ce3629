/** Which certificates the platform manages, in the database. The certificates themselves are files. */
import type { Database } from "better-sqlite3";
import type { CertificateRecord, CertificateStore } from "./contract.ts";

interface Row {
  name: string;
  app: string;
  added_at: string;
  failure: string | null;
}

/** Returns the repository of certificates in an open, migrated database. */
export function certificateStore(db: Database): CertificateStore {
  const select = "SELECT name, app, added_at, failure FROM certificates";
  const list = db.prepare<[], Row>(`${select} ORDER BY name`);
  const get = db.prepare<[string], Row>(`${select} WHERE name = ?`);
  const insert = db.prepare<Row>(
    "INSERT OR IGNORE INTO certificates (name, app, added_at, failure) SELECT @name, name, @added_at, @failure FROM apps WHERE name = @app",
  );
  const update = db.prepare<Omit<Row, "added_at">>(
    "UPDATE certificates SET app = @app, failure = @failure WHERE name = @name",
  );
  const remove = db.prepare<[string]>("DELETE FROM certificates WHERE name = ?");
  return {
    list: () => list.all().map(recordOf),
    get: (name) => {
      const row = get.get(name);
      return row && recordOf(row);
    },
    insert: ({ name, app, addedAt, failure }) =>
      insert.run({ name, app, added_at: addedAt, failure: textOf(failure) }).changes === 1,
    update: ({ name, app, failure }) => void update.run({ name, app, failure: textOf(failure) }),
    remove: (name) => remove.run(name).changes === 1,
  };
}

function recordOf({ name, app, added_at: addedAt, failure }: Row): CertificateRecord {
  return {
    name,
    app,
    addedAt,
    failure: failure === null ? null : (JSON.parse(failure) as CertificateRecord["failure"]),
  };
}

function textOf(failure: CertificateRecord["failure"]): string | null {
  return failure === null ? null : JSON.stringify(failure);
}
