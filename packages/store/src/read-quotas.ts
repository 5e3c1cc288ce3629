/** Reading what quotas are about, without being their platform. */
import type { QuotaOverrides } from "@hibernaut/domain/quota";
import { isThereSync } from "@hibernaut/lib/absence";
import Sqlite from "better-sqlite3";

/** An app with its own limits, the sizes of its volumes, and how much it has of what the platform serves for it. */
export interface QuotaApp {
  name: string;
  quota: QuotaOverrides;
  volumeGb: number;
  hostnames: number;
  certificates: number;
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
      .prepare<[], Omit<QuotaApp, "quota"> & { quota: string | null }>(
        `SELECT name, quota, (SELECT coalesce(sum(size_gb), 0) FROM volumes WHERE app = apps.name) AS volumeGb,
           (SELECT count(*) FROM hostnames WHERE app = apps.name) AS hostnames,
           (SELECT count(*) FROM certificates WHERE app = apps.name) AS certificates
         FROM apps ORDER BY name`,
      )
      .all();
    return rows.map(({ quota, ...row }) => ({ ...row, quota: JSON.parse(quota ?? "{}") as QuotaOverrides }));
  } finally {
    db.close();
  }
}
