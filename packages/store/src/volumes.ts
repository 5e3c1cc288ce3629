/** Volumes of apps, and their snapshots, in the database. */
import type { SnapshotSchedule, VolumeRecord, VolumeSnapshotRecord } from "@hibernaut/domain/volume";
import type { Database } from "better-sqlite3";
import type { VolumeStore } from "./contract.ts";
import { atomic } from "./database.ts";
import { factOf, type OutboxWriter } from "./outbox.ts";
import type { UsageMeter } from "./usage-meter.ts";

/** A volume's row: the schedule is JSON, or null. */
type VolumeRow = Omit<VolumeRecord, "schedule" | "epoch"> & { schedule: string | null; epoch: number | null };

function toRow({ schedule = null, epoch, ...volume }: VolumeRecord): VolumeRow {
  return { ...volume, epoch: epoch ?? null, schedule: schedule === null ? null : JSON.stringify(schedule) };
}

function fromRow({ schedule, epoch, ...volume }: VolumeRow): VolumeRecord {
  return {
    ...volume,
    ...(schedule !== null && { schedule: JSON.parse(schedule) as SnapshotSchedule }),
    ...(epoch !== null && { epoch }),
  };
}

/** Returns the repository of volumes in an open, migrated database. `usage` follows each change in its transaction. */
export function volumeStore(
  db: Database,
  usage: Pick<UsageMeter, "volume" | "volumeRemoved">,
  outbox: OutboxWriter,
): VolumeStore {
  const columns =
    "id, app, name, size_gb AS sizeGb, state, snapshot_retention AS snapshotRetention, schedule, created_at AS createdAt, epoch";
  const snapshotColumns =
    "id, volume_id AS volumeId, size_gb AS sizeGb, size_bytes AS sizeBytes, state, created_at AS createdAt";
  const insert = db.prepare<VolumeRow>(`
    INSERT INTO volumes (id, app, name, size_gb, state, snapshot_retention, schedule, created_at, epoch)
    SELECT @id, @app, @name, @sizeGb, @state, @snapshotRetention, @schedule, @createdAt, @epoch
    WHERE EXISTS (SELECT 1 FROM apps WHERE name = @app)
  `);
  const update = db.prepare<VolumeRow>(`
    UPDATE volumes SET size_gb = @sizeGb, state = @state, snapshot_retention = @snapshotRetention, schedule = @schedule,
      epoch = @epoch
    WHERE id = @id
  `);
  const remove = db.prepare<[string]>("DELETE FROM volumes WHERE id = ?");
  const get = db.prepare<[string], VolumeRow>(`SELECT ${columns} FROM volumes WHERE id = ?`);
  const listAll = db.prepare<[], VolumeRow>(`SELECT ${columns} FROM volumes ORDER BY seq`);
  const listApp = db.prepare<[string], VolumeRow>(`SELECT ${columns} FROM volumes WHERE app = ? ORDER BY seq`);
  const insertSnapshot = db.prepare<VolumeSnapshotRecord>(`
    INSERT INTO volume_snapshots (id, volume_id, size_gb, size_bytes, state, created_at)
    VALUES (@id, @volumeId, @sizeGb, @sizeBytes, @state, @createdAt)
  `);
  const updateSnapshot = db.prepare<VolumeSnapshotRecord>(
    "UPDATE volume_snapshots SET size_bytes = @sizeBytes, state = @state WHERE id = @id",
  );
  const removeSnapshot = db.prepare<[string]>("DELETE FROM volume_snapshots WHERE id = ?");
  const getSnapshot = db.prepare<[string], VolumeSnapshotRecord>(
    `SELECT ${snapshotColumns} FROM volume_snapshots WHERE id = ?`,
  );
  const listSnapshots = db.prepare<[string], VolumeSnapshotRecord>(
    `SELECT ${snapshotColumns} FROM volume_snapshots WHERE volume_id = ? ORDER BY seq DESC`,
  );

  const tell = (how: string, { id, app, name, sizeGb, state }: VolumeRecord | VolumeRow) =>
    outbox.add(factOf(`volume.${how}`, app, { id, name, size_gb: sizeGb, state }));

  return {
    insert: atomic(db, (volume: VolumeRecord, { movedIn } = { movedIn: false }) => {
      if (insert.run(toRow(volume)).changes === 0) return false;
      usage.volume(volume);
      tell(movedIn ? "moved_in" : "created", volume);
      return true;
    }),
    update: atomic(db, (volume: VolumeRecord) => {
      if (update.run(toRow(volume)).changes === 0) return;
      usage.volume(volume);
      tell("changed", volume);
    }),
    remove: atomic(db, (id: string, { movedAway } = { movedAway: false }) => {
      const row = get.get(id);
      if (row === undefined || remove.run(id).changes === 0) return;
      usage.volumeRemoved(id);
      tell(movedAway ? "moved_away" : "destroyed", row);
    }),
    get(id) {
      const row = get.get(id);
      return row && fromRow(row);
    },
    list: (app) => (app === undefined ? listAll.all() : listApp.all(app)).map(fromRow),
    insertSnapshot: (snapshot) => void insertSnapshot.run(snapshot),
    updateSnapshot: (snapshot) => void updateSnapshot.run(snapshot),
    removeSnapshot: (id) => void removeSnapshot.run(id),
    getSnapshot: (id) => getSnapshot.get(id),
    listSnapshots: (volumeId) => listSnapshots.all(volumeId),
  };
}
