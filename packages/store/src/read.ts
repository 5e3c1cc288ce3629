/** Reading the database of a platform that may have it open, without changing it. */
import type { OrderFailure } from "@hibernaut/domain/certificate";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { QuotaOverrides } from "@hibernaut/domain/quota";
import type { SnapshotSchedule } from "@hibernaut/domain/volume";
import { isThereSync } from "@hibernaut/lib/absence";
import Sqlite from "better-sqlite3";
import { fromRow, LIST_MACHINES, type MachineRow } from "./machines.ts";

/**
 * Returns the rows of a query. Empty when there is no database, or an earlier release wrote it, in which the table does not
 * have the column. Throws when it cannot be read.
 */
function rowsOf<Row>(file: string, { table, column }: { table: string; column: string }, query: string): Row[] {
  if (!isThereSync(file)) return [];
  const db = new Sqlite(file, { readonly: true });
  try {
    const known = db.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?").get(table, column);
    return known === undefined ? [] : db.prepare<[], Row>(query).all();
  } finally {
    db.close();
  }
}

/** Returns the machines of a database. Throws when it cannot be read. */
export function readMachines(file: string): MachineRecord[] {
  return rowsOf<MachineRow>(file, { table: "machines", column: "id" }, LIST_MACHINES).map(fromRow);
}

/** An app with its own limits, the sizes of its volumes, and how much it has of what the platform serves for it. */
interface QuotaApp {
  name: string;
  quota: QuotaOverrides;
  volumeGb: number;
  hostnames: number;
  certificates: number;
  previews: number;
}

/** Returns the apps of a database, by name. Throws when it cannot be read. */
export function readQuotaApps(file: string): QuotaApp[] {
  return rowsOf<Omit<QuotaApp, "quota"> & { quota: string | null }>(
    file,
    { table: "apps", column: "preview" },
    `SELECT name, quota, (SELECT coalesce(sum(size_gb), 0) FROM volumes WHERE app = apps.name) AS volumeGb,
       (SELECT count(*) FROM hostnames WHERE app = apps.name) AS hostnames,
       (SELECT count(*) FROM certificates WHERE app = apps.name) AS certificates,
       (SELECT count(*) FROM apps AS other WHERE other.preview ->> '$.of' = apps.name
          AND other.preview ->> '$.ofCreatedAt' = apps.created_at) AS previews
     FROM apps ORDER BY name`,
  ).map(({ quota, ...row }) => ({ ...row, quota: JSON.parse(quota ?? "{}") as QuotaOverrides }));
}

/** A volume with scheduled snapshots. */
interface ScheduledVolume {
  id: string;
  app: string;
  schedule: SnapshotSchedule;
}

/** Returns the volumes with scheduled snapshots of a database. Throws when it cannot be read. */
export function readScheduledVolumes(file: string): ScheduledVolume[] {
  return rowsOf<{ id: string; app: string; schedule: string }>(
    file,
    { table: "volumes", column: "schedule" },
    "SELECT id, app, schedule FROM volumes WHERE schedule IS NOT NULL ORDER BY seq",
  ).map(({ id, app, schedule }) => ({ id, app, schedule: JSON.parse(schedule) as SnapshotSchedule }));
}

/** A managed certificate, as the database knows it. */
interface ManagedCertificate {
  name: string;
  app: string;
  failure: OrderFailure | null;
}

/** Returns the managed certificates of a database, by name. Throws when it cannot be read. */
export function readManagedCertificates(file: string): ManagedCertificate[] {
  return rowsOf<{ name: string; app: string; failure: string | null }>(
    file,
    { table: "certificates", column: "failure" },
    "SELECT name, app, failure FROM certificates ORDER BY name",
  ).map(({ name, app, failure }) => ({ name, app, failure: JSON.parse(failure ?? "null") as OrderFailure | null }));
}
