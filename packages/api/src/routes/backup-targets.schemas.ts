/** The shapes of `/v1/platform/backups/targets`. */
import { type Static, Type } from "typebox";
import { bytes, closed, nullable, oneOf, time } from "../schemas.ts";
import { FailedCommand } from "./backup.ts";

export const TargetParams = Type.Object({ target: Type.String({ description: "Name of the target." }) }, closed);

const schedule = Type.String({
  maxLength: 200,
  description: "When backups are made: a cron expression of five fields, in UTC, such as `0 3 * * *`.",
});
const keep = Type.String({
  maxLength: 100,
  description: "For how many days, weeks and months the last backup of each is kept, such as `7d,4w,6m`.",
});
const drillSchedule = Type.String({
  maxLength: 200,
  description:
    "When an app of the newest backup is tried, each time the one whose last drill is the longest ago: a cron expression of five fields, in UTC.",
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
    drill_schedule: Type.Optional(nullable(drillSchedule, "Null: drills take place only when they are asked for.")),
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
    failed_commands: Type.Array(FailedCommand),
    changed: Type.Array(Type.String(), {
      description:
        "Images and other pieces that never change, and which are not what an earlier backup has although nobody wrote to them.",
    }),
    error: Failure,
  },
  closed,
);

const choice = {
  set: Type.Optional(Type.String({ maxLength: 200, description: "This set. Default: the newest of this platform." })),
  at: Type.Optional(
    Type.String({ maxLength: 40, format: "date-time", description: "The newest that was made then or before." }),
  ),
};
const appName = Type.String({
  minLength: 1,
  maxLength: 63,
  description: "The app, as it was called when it was backed up.",
});

export const RestoreAppBody = Type.Object(
  {
    app_name: appName,
    as: Type.Optional(Type.String({ maxLength: 63, description: "The name of the copy. Default: the app's own." })),
    in_place: Type.Optional(
      Type.Boolean({ description: "Whether its machines take over from those that the app has. Default: false." }),
    ),
    ...choice,
  },
  { ...closed, title: "RestoreAppRequest" },
);

export const DrillBody = Type.Object(
  { app_name: Type.Optional(appName), ...choice },
  { ...closed, title: "DrillRequest" },
);

const ended = {
  started_at: time,
  ended_at: time,
  app_name: Type.String(),
  set: nullable(Type.String()),
  set_at: nullable(time, "When the set was made."),
  error: Failure,
};

const RestoreReply = Type.Object(
  {
    ...ended,
    as: Type.String({ description: "The app that it became." }),
    machines: Type.Array(
      Type.Object(
        {
          ...{ id: Type.String(), name: Type.String() },
          from: Type.String({ description: "The machine that it was in the backup." }),
          cordoned: Type.Boolean({ description: "Whether it was cordoned then, and is." }),
          without_memory: nullable(Type.String(), "Why it starts from scratch. Null if it has its memory."),
        },
        closed,
      ),
    ),
    volumes: Type.Array(Type.String(), { description: "Ids of the new volumes." }),
    replaced: Type.Array(Type.String(), { description: "Machines whose place was taken. They are cordoned." }),
  },
  { ...closed, title: "AppRestore" },
);

const DrillReply = Type.Object(
  {
    ...ended,
    outcome: oneOf(["passed", "failed", "untried"]),
    machines: Type.Array(
      Type.Object(
        {
          ...{ from: Type.String(), name: Type.String() },
          start: nullable(Type.String(), "How it came up: `resume`, `warm` or `cold`."),
          health: oneOf(["healthy", "failed", "stopped"]),
          took_ms: nullable(Type.Integer(), "Until it was healthy."),
          note: nullable(Type.String()),
        },
        closed,
      ),
    ),
    counts: Type.Array(
      Type.Object(
        {
          ...{ machine: Type.String(), name: Type.String() },
          value: nullable(Type.Integer(), "Null if it could not be counted."),
          minimum: Type.Integer(),
          before: nullable(Type.Integer(), "What the drill before counted."),
          note: nullable(Type.String()),
        },
        closed,
      ),
    ),
  },
  { ...closed, title: "BackupDrill", description: "How the latest drill of an app ended." },
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
      Type.Object(
        { phase: oneOf(["copying", "verifying", "deleting", "checking", "restoring", "drilling"]), started_at: time },
        closed,
      ),
      "What happens there at the moment.",
    ),
    last: nullable(Last, "How the latest backup ended."),
    last_success: nullable(Type.Object({ at: time, set: Type.String() }, closed), "The latest backup that counts."),
    last_check: nullable(Type.Object({ at: time, read_data: Type.Boolean(), error: Failure }, closed)),
    prune_error: nullable(Type.String(), "Why old backups could not be deleted after the latest one."),
    drill_schedule: nullable(Type.String()),
    next_drill_at: nullable(time, "When the next drill is due."),
    last_drill: nullable(DrillReply, "The latest drill, also one that did not come as far as an app."),
    drills: Type.Array(DrillReply, { description: "The latest drill of each app, the latest one first." }),
    last_restore: nullable(RestoreReply, "How the latest restore of an app from here ended."),
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
