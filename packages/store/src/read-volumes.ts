/** Reading how scheduled snapshots of volumes are doing, without being their platform. */
import type { SnapshotSchedule } from "@hibernaut/domain/volume";
import { isThereSync } from "@hibernaut/lib/absence";
import Sqlite from "better-sqlite3";

/** A volume with scheduled snapshots. */
export interface ScheduledVolume {
  id: string;
  app: string;
  schedule: SnapshotSchedule;
}

/**
 * Returns the volumes with scheduled snapshots of a database that a platform may have open, without changing it. Empty when
 * there is no database, or an earlier release wrote it. Throws when it cannot be read.
 */
export function readScheduledVolumes(file: string): ScheduledVolume[] {
  if (!isThereSync(file)) return [];
  const db = new Sqlite(file, { readonly: true });
  try {
    const column = db.prepare("SELECT 1 FROM pragma_table_info('volumes') WHERE name = 'schedule'").get();
    if (column === undefined) return [];
    const rows = db
      .prepare<[], { id: string; app: string; schedule: string }>(
        "SELECT id, app, schedule FROM volumes WHERE schedule IS NOT NULL ORDER BY seq",
      )
      .all();
    return rows.map(({ id, app, schedule }) => ({ id, app, schedule: JSON.parse(schedule) as SnapshotSchedule }));
  } finally {
    db.close();
  }
}
