/** Reading what quotas are about, without being their platform. */
import Sqlite from "better-sqlite3";
import { isThereSync } from "../lib/absence.ts";
import type { QuotaOverrides } from "../domain/quota.ts";

/** An app with its own limits and the sizes of its volumes. */
export interface QuotaApp {
  name: string;
  quota: QuotaOverrides;
  volumeGb: number;
}

/**
 * Returns the apps of a database that a platform may have open, without changing it. Empty when there is no database, or
 * an earlier release wrote it. Throws when it cannot be read.
 */
export function readQuotaApps(file: string): QuotaApp[] {
  if (!isThereSync(file)) return [];
  const db = new Sqlite(file, { readonly: true });
  try {
    const column = db.prepare("SELECT 1 FROM pragma_table_info('apps') WHERE name = 'quota'").get();
    if (column === undefined) return [];
    const rows = db
      .prepare<[], { name: string; quota: string | null; volumeGb: number }>(
        `SELECT name, quota, (SELECT coalesce(sum(size_gb), 0) FROM volumes WHERE app = apps.name) AS volumeGb
         FROM apps ORDER BY name`,
      )
      .all();
    return rows.map(({ quota, ...row }) => ({ ...row, quota: JSON.parse(quota ?? "{}") as QuotaOverrides }));
  } finally {
    db.close();
  }
}
