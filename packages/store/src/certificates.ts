/** Which certificates the platform manages, in the database. The certificates themselves are files. */
import type { Database } from "better-sqlite3";
import type { CertificateRecord, CertificateStore } from "./contract.ts";
import { atomic } from "./database.ts";
import { factOf, type OutboxWriter } from "./outbox.ts";

interface Row {
  name: string;
  app: string;
  added_at: string;
  failure: string | null;
}

/** Returns the repository of certificates in an open, migrated database. */
export function certificateStore(db: Database, outbox: OutboxWriter): CertificateStore {
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
  const told = (how: "added" | "issued" | "failed" | "removed", { name, app, failure }: CertificateRecord) =>
    outbox.add(factOf(`certificate.${how}`, app, { name, ...(failure !== null && { failure }) }));
  return {
    list: () => list.all().map(recordOf),
    get: (name) => {
      const row = get.get(name);
      return row && recordOf(row);
    },
    insert: atomic(db, (certificate: CertificateRecord) => {
      const { name, app, addedAt, failure } = certificate;
      if (insert.run({ name, app, added_at: addedAt, failure: textOf(failure) }).changes === 0) return false;
      told("added", certificate);
      return true;
    }),
    update: atomic(db, (certificate: CertificateRecord, outcome?: "issued" | "failed") => {
      const { name, app, failure } = certificate;
      update.run({ name, app, failure: textOf(failure) });
      if (outcome !== undefined) told(outcome, certificate);
    }),
    remove: atomic(db, (name: string) => {
      const row = get.get(name);
      if (row === undefined) return false;
      remove.run(name);
      told("removed", { ...recordOf(row), failure: null });
      return true;
    }),
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
