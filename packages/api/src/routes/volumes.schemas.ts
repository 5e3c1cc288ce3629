/** Shapes of `/v1/apps/{app_name}/volumes`. */
import { RETENTION_DAYS, VOLUME_GB } from "@hibernaut/domain/limits";
import { type Static, Type } from "typebox";
import { closed, nullable, oneOf, time } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";

const state = oneOf(["creating", "created", "destroying"]);

export const VolumeReply = Type.Object(
  {
    id: Type.String({ pattern: "^vol_[0-9a-f]{16}$" }),
    name: Type.String({ description: "Several volumes of an app may have the same name." }),
    state,
    size_gb: Type.Integer({ description: "Size in GB." }),
    used_bytes: Type.Integer({
      description: "Bytes that the volume takes on the host's disk. Grows as data is written.",
    }),
    region: Type.String(),
    host: Type.Optional(Type.String({ description: "In a cluster, the host that has the volume." })),
    newer_on: Type.Optional(
      Type.String({
        description:
          "In a cluster, the host that has a newer copy of this volume, after a restore of etcd. No machine gets the copy here: destroy it at its host.",
      }),
    ),
    encrypted: Type.Literal(false, { description: "Volumes are not encrypted. Encrypt the host's disk instead." }),
    attached_machine_id: nullable(Type.String(), "Id of the one machine that uses the volume."),
    snapshot_retention: Type.Integer({ description: "Days that the volume's snapshots are kept." }),
    auto_backup_enabled: Type.Boolean({ description: "Whether the platform takes snapshots by itself." }),
    last_scheduled_snapshot_at: nullable(time, "When the platform last took one. Null before the first."),
    scheduled_snapshot_error: nullable(
      Type.String(),
      "Why the one that is due could not be taken yet. Null when none is due.",
    ),
    created_at: time,
  },
  { ...closed, title: "Volume", description: "A disk that outlives machines." },
);

export const VolumeList = Type.Array(VolumeReply);

export const VolumeSnapshotReply = Type.Object(
  {
    id: Type.String({ pattern: "^vs_[0-9a-f]{16}$" }),
    status: state,
    size: Type.Integer({
      description: "Bytes that the snapshot takes on the host's disk, without those that it shares with the volume.",
    }),
    volume_size: Type.Integer({ description: "GB. A volume created from the snapshot has at least this size." }),
    retention_days: Type.Integer({ description: "Days that the snapshot is kept." }),
    created_at: time,
  },
  { ...closed, title: "VolumeSnapshot", description: "A volume as it was at one moment." },
);

export const VolumeSnapshotList = Type.Array(VolumeSnapshotReply);

export const VolumeParams = Type.Object(
  {
    ...AppParams.properties,
    volume_id: Type.String({
      description:
        "The volume's id, its name if no other volume of the app has it, or the beginning of its id, with or without `vol_`.",
    }),
  },
  closed,
);

export const VolumeSnapshotParams = Type.Object({ ...VolumeParams.properties, snapshot_id: Type.String() }, closed);

export const CreateVolumeBody = Type.Object(
  {
    name: Type.String({ maxLength: 64, description: "1 to 63 characters of a-z, 0-9, _ and -." }),
    size_gb: Type.Optional(
      Type.Integer({ ...VOLUME_GB, description: "Size in GB. Default: that of what it is made from, otherwise 1." }),
    ),
    region: Type.Optional(Type.String({ maxLength: 64, description: "The platform's only region." })),
    host: Type.Optional(
      Type.String({
        maxLength: 64,
        description: "In a cluster, the host to create the volume on. Default: one that is chosen.",
      }),
    ),
    snapshot_id: Type.Optional(
      Type.String({ maxLength: 64, description: "Start with the content of this snapshot. Default: empty." }),
    ),
    source_volume_id: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          "Start as a copy of this volume, which is of the same app, or of the app that it is a preview of. Its machine sleeps or is stopped, unless the file system of the host clones files. Default: empty.",
      }),
    ),
    snapshot_retention: Type.Optional(
      Type.Integer({ ...RETENTION_DAYS, description: "Days that the volume's snapshots are kept. Default: 5." }),
    ),
    auto_backup_enabled: Type.Optional(
      Type.Boolean({
        description: "Take snapshots by itself. Default: as the setting HIBERNAUT_SCHEDULED_SNAPSHOTS says.",
      }),
    ),
  },
  { ...closed, title: "CreateVolumeRequest" },
);

/** Changes a volume. What is absent stays as it is. */
export const UpdateVolumeBody = Type.Object(
  {
    snapshot_retention: Type.Optional(
      Type.Integer({ ...RETENTION_DAYS, description: "Days that the volume's snapshots are kept." }),
    ),
    auto_backup_enabled: Type.Optional(Type.Boolean({ description: "Take snapshots by itself." })),
  },
  { ...closed, title: "UpdateVolumeRequest" },
);

export const ExtendVolumeBody = Type.Object(
  { size_gb: Type.Integer({ ...VOLUME_GB, description: "The new size in GB." }) },
  closed,
);

export const ExtendVolumeReply = Type.Object(
  {
    volume: VolumeReply,
    needs_restart: Type.Boolean({
      description: "Whether the volume's machine has to be restarted before it sees the new size.",
    }),
  },
  { ...closed, title: "ExtendedVolume" },
);

export type VolumeWire = Static<typeof VolumeReply>;

export type VolumeSnapshotWire = Static<typeof VolumeSnapshotReply>;
