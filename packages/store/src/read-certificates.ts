/** Reading which certificates cannot be had or renewed, without being their platform. */
import type { OrderFailure } from "@hibernaut/domain/certificate";
import { isThereSync } from "@hibernaut/lib/absence";
import Sqlite from "better-sqlite3";

/** A managed certificate, as the database knows it. */
export interface ManagedCertificate {
  name: string;
  app: string;
  failure: OrderFailure | null;
}

/**
 * Returns the managed certificates of a database that a platform may have open, without changing it. Empty when there is
 * no database, or an earlier release wrote it. Throws when it cannot be read.
 */
export function readManagedCertificates(file: string): ManagedCertificate[] {
  if (!isThereSync(file)) return [];
  const db = new Sqlite(file, { readonly: true });
  try {
    const table = db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'certificates'").get();
    if (table === undefined) return [];
    const rows = db
      .prepare<[], { name: string; app: string; failure: string | null }>(
        "SELECT name, app, failure FROM certificates ORDER BY name",
      )
      .all();
    return rows.map(({ name, app, failure }) => ({
      name,
      app,
      failure: failure === null ? null : (JSON.parse(failure) as OrderFailure),
    }));
  } finally {
    db.close();
  }
}
