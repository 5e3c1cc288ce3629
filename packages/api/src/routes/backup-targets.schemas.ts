/** The shapes of `/v1/platform/backups/targets`. */
import { type Static, Type } from "typebox";
import { bytes, closed, nullable, oneOf, time } from "../schemas.ts";

export const TargetParams = Type.Object({ target: Type.String({ description: "Name of the target." }) }, closed);

const schedule = Type.String({
  maxLength: 200,
  description: "When backups are made: a cron expression of five fields, in UTC, such as `0 3 * * *`.",
});
const keep = Type.String({
  maxLength: 100,
  description: "For how many days, weeks and months the last backup of each is kept, such as `7d,4w,6m`.",
});
/** Given once, and in no reply ever after. */
const secret = (description: string, maxLength = 1000) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, writeOnly: true, description }));

export const AddTargetBody = Type.Object(
  {
    name: Type.String({ maxLength: 100, description: "Up to 32 of a-z, 0-9 and -." }),
    url: Type.String({
      maxLength: 1000,
      description:
        "`s3://<endpoint>/<bucket>/<prefix>`, `sftp://<user>@<host>/<path>`, or the path of a directory on the platform's host.",
    }),
    schedule: Type.Optional(schedule),
    keep: Type.Optional(keep),
    key: secret("The key of the repository that is there. By default, a new repository is made with a new key."),
    access_key: secret("For S3."),
    secret_key: secret("For S3."),
    ssh_key: secret("For SFTP: a private key without a passphrase, in the form that OpenSSH reads.", 65_536),
  },
  { ...closed, title: "AddBackupTargetRequest" },
);

export const UpdateTargetBody = Type.Object(
  {
    schedule: Type.Optional(nullable(schedule, "Null: no backups are made by themselves.")),
    keep: Type.Optional(nullable(keep, "Null: nothing is deleted.")),
  },
  { ...closed, title: "UpdateBackupTargetRequest" },
);

export const CheckBody = Type.Object(
  {
    read_data: Type.Optional(
      Type.Boolean({ description: "Read everything that is stored there, which may take hours. Default: false." }),
    ),
  },
  closed,
);

const Failure = nullable(Type.Object({ code: Type.String(), message: Type.String() }, closed));

const Last = Type.Object(
  {
    started_at: time,
    ended_at: time,
    state: oneOf(["complete", "failed", "canceled"]),
    set: nullable(Type.String(), "The set that was made."),
    bytes,
    added: Type.Integer({ minimum: 0, description: "Bytes that it added to what is stored." }),
    changed: Type.Array(Type.String(), {
      description:
        "Images and other pieces that never change, and which are not what an earlier backup has although nobody wrote to them.",
    }),
    error: Failure,
  },
  closed,
);

export const TargetReply = Type.Object(
  {
    name: Type.String(),
    url: Type.String(),
    kind: oneOf(["directory", "s3", "sftp"]),
    added_at: time,
    schedule: nullable(Type.String()),
    keep: nullable(Type.String()),
    next_at: nullable(time, "When the next backup is due."),
    overdue: Type.Boolean({ description: "Whether the latest good backup is older than the schedule promises." }),
    running: nullable(
      Type.Object({ phase: oneOf(["copying", "verifying", "deleting", "checking"]), started_at: time }, closed),
      "What happens there at the moment.",
    ),
    last: nullable(Last, "How the latest backup ended."),
    last_success: nullable(Type.Object({ at: time, set: Type.String() }, closed), "The latest backup that counts."),
    last_check: nullable(Type.Object({ at: time, read_data: Type.Boolean(), error: Failure }, closed)),
    prune_error: nullable(Type.String(), "Why old backups could not be deleted after the latest one."),
  },
  { ...closed, title: "BackupTarget", description: "A place where backups of the platform are kept." },
);

export const NewTargetReply = Type.Object(
  {
    target: TargetReply,
    key: nullable(
      Type.String(),
      "The key of the repository, if it was made with this request. Without it, nothing there can be read. It is in no other reply.",
    ),
  },
  { ...closed, title: "NewBackupTarget" },
);

export const TargetList = Type.Object({ targets: Type.Array(TargetReply) }, closed);

const SetReply = Type.Object(
  {
    set: Type.String(),
    at: time,
    state: oneOf(["complete", "incomplete", "unreadable"]),
    reason: nullable(Type.String(), "Why it does not count."),
    own: Type.Boolean({ description: "Whether this platform made it." }),
    host: nullable(Type.String()),
    version: nullable(Type.String(), "The version of Hibernaut that made it."),
    apps: Type.Array(Type.String()),
    machines: Type.Integer({ minimum: 0 }),
    bytes,
    added: Type.Integer({ minimum: 0, description: "Bytes that it added to what is stored." }),
    verified: nullable(
      Type.Object({ at: time, read: oneOf(["pieces", "sample"]) }, closed),
      "How it was verified before it counted.",
    ),
  },
  { ...closed, title: "BackupSet", description: "A backup of a platform at a target." },
);

export const SetList = Type.Object({ sets: Type.Array(SetReply) }, closed);

export type TargetWire = Static<typeof TargetReply>;
export type SetWire = Static<typeof SetReply>;
