/**
 * What goes over the wire, as schemas: they check requests, type the handlers and are the
 * OpenAPI document. Named ones appear there once, under `components`.
 */
import { type Static, type TSchema, Type } from "typebox";
import { ERROR_STATUS } from "../domain/errors.ts";
import { MachineConfig, VOLUME_GB } from "../domain/config.ts";
import { LOG_STREAMS } from "../machines/logs/entry.ts";
import { STATES } from "../domain/machine.ts";

const closed = { additionalProperties: false } as const;
const time = Type.String({ format: "date-time" });
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** A reference to a named schema, typed as what it points at. */
function named<T extends TSchema>(name: string, _schema: T) {
  return Type.Unsafe<Static<T>>({ $ref: `${name}#` });
}

const state = Type.Unsafe<(typeof STATES)[number]>({ type: "string", enum: [...STATES] });
const config = named("MachineConfig", MachineConfig);

const Crash = Type.Object(
  {
    at: time,
    reason: Type.String({ description: "how the app ended, e.g. `the app exited with code 1`" }),
    exit_code: nullable(Type.Integer({ description: "null when the virtual machine vanished" })),
    at_start: Type.Boolean({ description: "it ended before it listened on its ports" }),
    attempt: Type.Integer({ description: "the start that follows, counted from 1" }),
    max_attempts: Type.Integer({ description: "the restart policy's `max_retries`" }),
    retry_at: nullable(time),
  },
  closed,
);

const KeepAwake = Type.Object({ until: time, reason: Type.String() }, closed);

const Machine = Type.Object(
  {
    machine_id: Type.String({ pattern: "^[0-9a-f]{14}$" }),
    id: Type.String({ description: "the same as machine_id" }),
    app_name: Type.String(),
    name: Type.String(),
    state,
    state_reason: nullable(Type.String({ description: "the fault of `failed`, the exit of `stopped`" })),
    unreachable: nullable(
      Type.String({
        description: "why no request reaches the app that runs: it listens on another port, or on loopback",
      }),
    ),
    region: Type.String(),
    version: Type.String({ description: "a ULID that changes with every update" }),
    config,
    image: Type.Object({ ref: Type.String(), digest: Type.String() }, closed),
    checks: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          status: Type.Union([Type.Literal("passing"), Type.Literal("warning"), Type.Literal("critical")]),
          output: Type.String(),
          updated_at: time,
        },
        closed,
      ),
      { description: "what its checks last found; empty unless it runs" },
    ),
    suspend: Type.Object({ eligible: Type.Boolean(), reasons: Type.Array(Type.String()) }, closed),
    snapshot: nullable(Type.Object({ created_at: time, size_bytes: Type.Integer() }, closed)),
    last_boot: nullable(
      Type.Object(
        {
          kind: Type.Union([Type.Literal("resume"), Type.Literal("cold")]),
          reason: Type.String(),
          at: time,
          duration_ms: Type.Number(),
        },
        closed,
      ),
    ),
    keep_awake: nullable(KeepAwake),
    crash: nullable(Crash),
    private_address: Type.String(),
    created_at: time,
    updated_at: time,
  },
  closed,
);

const MachineEvent = Type.Object(
  {
    at: time,
    type: Type.String(),
    from: nullable(state),
    to: state,
    details: Type.Record(Type.String(), Type.Unknown()),
  },
  closed,
);

const LogEntry = Type.Object(
  {
    at: time,
    machine: Type.String({ description: "id of the machine" }),
    stream: Type.Unsafe<(typeof LOG_STREAMS)[number]>({ type: "string", enum: [...LOG_STREAMS] }),
    text: Type.String(),
  },
  closed,
);

const App = Type.Object(
  {
    name: Type.String(),
    created_at: time,
    machine_count: Type.Integer(),
    urls: Type.Array(Type.String(), {
      description: "where the proxy answers for the app, as far as the platform knows for sure; it needs a service",
    }),
  },
  closed,
);

const Token = Type.Object(
  { id: Type.String(), name: Type.String(), created_at: time, revoked_at: nullable(time) },
  closed,
);

const Release = Type.Object(
  {
    version: Type.Integer(),
    status: Type.Union([Type.Literal("pending"), Type.Literal("complete"), Type.Literal("failed")]),
    image: Type.Object({ ref: Type.String(), digest: Type.String() }, closed),
    description: Type.String(),
    created_at: time,
  },
  closed,
);

const volumeState = Type.Union([Type.Literal("creating"), Type.Literal("created"), Type.Literal("destroying")]);

const Volume = Type.Object(
  {
    id: Type.String({ pattern: "^vol_[0-9a-f]{16}$" }),
    name: Type.String({ description: "several volumes of an app may have the same" }),
    state: volumeState,
    size_gb: Type.Integer(),
    used_bytes: Type.Integer({ description: "what it takes on the disk; it grows with what was written" }),
    region: Type.String(),
    encrypted: Type.Literal(false, { description: "encrypt the disk of the host" }),
    attached_machine_id: nullable(Type.String({ description: "the one machine that has it" })),
    snapshot_retention: Type.Integer({ description: "days that its snapshots are kept" }),
    created_at: time,
  },
  closed,
);

const VolumeSnapshot = Type.Object(
  {
    id: Type.String({ pattern: "^vs_[0-9a-f]{16}$" }),
    status: volumeState,
    size: Type.Integer({ description: "bytes that it takes on the disk, where it shares none with the volume" }),
    volume_size: Type.Integer({ description: "GB; a volume that is made of it has as much or more" }),
    retention_days: Type.Integer(),
    created_at: time,
  },
  closed,
);

const Failure = Type.Object(
  {
    error: Type.Unsafe<keyof typeof ERROR_STATUS>({ type: "string", enum: Object.keys(ERROR_STATUS) }),
    message: Type.String(),
    details: Type.Record(Type.String(), Type.Unknown()),
    request_id: Type.String(),
  },
  closed,
);

/** The schemas that have a name in the document. */
export const COMPONENTS: Readonly<Record<string, TSchema>> = {
  MachineConfig,
  Machine,
  MachineEvent,
  LogEntry,
  App,
  Release,
  Token,
  Volume,
  VolumeSnapshot,
  Error: Failure,
};

/** A machine as it goes over the wire; the next ones likewise. */
export type MachineWire = Static<typeof Machine>;
export type MachineEventWire = Static<typeof MachineEvent>;
export type LogEntryWire = Static<typeof LogEntry>;
export type AppWire = Static<typeof App>;
export type ReleaseWire = Static<typeof Release>;
export type TokenWire = Static<typeof Token>;
export type VolumeWire = Static<typeof Volume>;
export type VolumeSnapshotWire = Static<typeof VolumeSnapshot>;
export type ErrorWire = Static<typeof Failure>;

/** Replies. */
export const MachineReply = named("Machine", Machine);
export const MachineList = Type.Array(MachineReply);
export const MachineEventList = Type.Array(named("MachineEvent", MachineEvent));
export const ReleaseReply = named("Release", Release);
export const ReleaseList = Type.Object({ releases: Type.Array(ReleaseReply) }, closed);
export const AppReply = named("App", App);
export const AppList = Type.Object({ apps: Type.Array(AppReply), total_apps: Type.Integer() }, closed);
export const TokenList = Type.Object({ tokens: Type.Array(named("Token", Token)) }, closed);
/** One line of the reply: the reply itself is many of them. */
export const LogLine = named("LogEntry", LogEntry);
export const Ok = Type.Object({ ok: Type.Literal(true) }, closed);
export const StartReply = Type.Object({ ok: Type.Literal(true), previous_state: state }, closed);
export const WaitReply = Type.Object({ ok: Type.Literal(true), state }, closed);

/** Shown once, when the token is made: only its hash is kept. */
export const NewToken = Type.Object(
  { id: Type.String(), name: Type.String(), token: Type.String(), created_at: time },
  closed,
);

/** The regions there are, in the shape of Fly's. */
export const Regions = Type.Object(
  { regions: Type.Array(Type.Object({ code: Type.String(), name: Type.String() }, closed)), nearest: Type.String() },
  closed,
);

/** What the platform is; only a working one answers so. */
export const Health = Type.Object(
  {
    status: Type.Literal("ok"),
    version: Type.String(),
    region: Type.String(),
    hypervisor: Type.String(),
    hypervisor_version: Type.String(),
    accelerator: Type.String({ description: "`kvm`, or `tcg` for software emulation" }),
    accelerator_reason: Type.String(),
    proxy_url: nullable(
      Type.String({ description: "where the proxy listens; null when proxies run in processes of their own" }),
    ),
    guest_bundle: Type.String({ description: "version of the guest bundle that new machines boot from" }),
    network: Type.Object(
      { mode: Type.String({ description: "`bridge`, or `user` for QEMU's own network" }), reason: Type.String() },
      closed,
    ),
  },
  closed,
);

/** Parts of the path. */
export const AppParams = Type.Object({ app_name: Type.String() }, closed);
const machineWord = Type.String({
  description: "a machine's id, its name, or the beginning of its id (3 characters at least)",
});
export const MachineParams = Type.Object({ app_name: Type.String(), machine_id: machineWord }, closed);
export const TokenParams = Type.Object({ token_id: Type.String() }, closed);
/** Nothing: a query or a body with any key is refused. */
export const NoQuery = Type.Object({}, closed);
export const NoBody = Type.Object({}, closed);
/** `?force=true` */
export const ForceQuery = Type.Object(
  { force: Type.Optional(Type.Boolean({ description: "default: false" })) },
  closed,
);
/** `?limit=20` */
export const EventsQuery = Type.Object(
  { limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: "default: 100" })) },
  closed,
);

const wordsOf = (description: string) =>
  Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], {
      description: `${description}; may repeat or be comma separated`,
    }),
  );

/** The most lines that a request may ask for: a minute of an app that prints 160 a second. */
export const MAX_LOG_LINES = 10_000;

/** `?limit=100&since=10m&stream=stderr&follow=1` */
export const LogsQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_LOG_LINES,
        description: `the last so many lines; default: 100, with \`since\` ${MAX_LOG_LINES}`,
      }),
    ),
    since: Type.Optional(
      Type.String({ description: "lines from then on: a time (RFC 3339), or how long ago: 30s, 10m, 2h, 1d" }),
    ),
    stream: wordsOf(`${LOG_STREAMS.join(", ")}; default: all`),
    follow: Type.Optional(
      Type.Union([Type.Literal("1"), Type.Literal("true"), Type.Literal("0"), Type.Literal("false")], {
        description: "go on with what comes, until the machine is destroyed; default: 0",
      }),
    ),
  },
  closed,
);

/** The same of an app's machines. */
export const AppLogsQuery = Type.Object(
  {
    ...LogsQuery.properties,
    machine: wordsOf(
      "machines, by id, name or the beginning of the id; default: all, also those made while one follows",
    ),
  },
  closed,
);

/** `?state=suspended,failed&timeout=30` */
export const WaitQuery = Type.Object(
  {
    state: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String())], {
        description:
          "running (default; also `started`), stopped, suspended, destroyed, failed, created, restarting, or settled for any resting state; may repeat or be comma separated",
      }),
    ),
    timeout: Type.Optional(Type.Integer({ minimum: 1, maximum: 300, description: "seconds; default: 60" })),
  },
  closed,
);

/** A new app. One of the two names is needed. */
export const CreateAppBody = Type.Object(
  {
    app_name: Type.Optional(Type.String()),
    name: Type.Optional(Type.String({ description: "the same as app_name" })),
  },
  closed,
);

/** A new machine. */
export const CreateMachineBody = Type.Object(
  {
    name: Type.Optional(Type.String()),
    region: Type.Optional(Type.String()),
    config: MachineConfig,
    skip_launch: Type.Optional(Type.Boolean({ description: "rest in `created` instead of starting; default: false" })),
  },
  closed,
);

const words = Type.String({ minLength: 1, maxLength: 32_768, pattern: "^[^\\u0000]*$" });
const variables = Type.Record(
  Type.String({ pattern: "^[^=\\u0000]+$" }),
  Type.String({ maxLength: 32_768, pattern: "^[^\\u0000]*$" }),
  closed,
);

/** A command. */
export const ExecBody = Type.Object(
  {
    command: Type.Array(words, { minItems: 1, maxItems: 256, description: "program first; looked up in PATH" }),
    stdin: Type.Optional(Type.String({ description: "its whole input; none when absent" })),
    timeout: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 3600, description: "seconds of the machine's own time; default: 60" }),
    ),
    env: Type.Optional(variables),
    user: Type.Optional(Type.String({ maxLength: 256, description: "user[:group]; default: the image's" })),
    workdir: Type.Optional(Type.String({ maxLength: 4096, description: "default: the image's" })),
  },
  closed,
);

/** How a command ended. */
export const ExecReply = Type.Object(
  {
    exit_code: Type.Integer({ description: "128 + the signal when one ended it; 126 or 127 when it could not be run" }),
    exit_signal: Type.Integer({ description: "0 for none" }),
    stdout: Type.String(),
    stderr: Type.String(),
    timed_out: Type.Boolean(),
    truncated: Type.Boolean({ description: "there was more output than is kept" }),
  },
  closed,
);

/** `?command=sh&command=-c&command=...&tty=true` */
export const ExecStreamQuery = Type.Object(
  {
    command: Type.Union([words, Type.Array(words, { minItems: 1, maxItems: 256 })], {
      description: "repeat it for each word",
    }),
    tty: Type.Optional(Type.Boolean({ description: "with a terminal; default: false" })),
    stdin: Type.Optional(Type.Boolean({ description: "with an input; default: false, true with a terminal" })),
    rows: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, description: "default: 24" })),
    columns: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, description: "default: 80" })),
    term: Type.Optional(Type.String({ maxLength: 64, pattern: "^[\\w.+-]+$", description: "TERM; default: xterm" })),
    timeout: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 86_400, description: "seconds; 0 is never; default: 0" }),
    ),
    user: Type.Optional(Type.String({ maxLength: 256 })),
    workdir: Type.Optional(Type.String({ maxLength: 4096 })),
  },
  closed,
);

/** A wish not to be put to sleep. */
export const KeepAliveBody = Type.Object(
  {
    ttl: Type.Integer({ minimum: 1, description: "seconds from now; bounded by HIBERNAUT_KEEPALIVE_MAX_TTL" }),
    reason: Type.Optional(Type.String({ maxLength: 200 })),
  },
  closed,
);

/** Answers {@link KeepAliveBody}. */
export const KeepAliveReply = Type.Object({ ok: Type.Literal(true), keep_awake: nullable(KeepAwake) }, closed);

/** A suspend that waits for the app. */
export const QuestionParams = Type.Object({ event_id: Type.String() }, closed);

/** A host name of an app. */
export const HostnameBody = Type.Object({ hostname: Type.String({ minLength: 1, maxLength: 254 }) }, closed);
export const HostnameReply = Type.Object({ hostname: Type.String() }, closed);
export const HostnameList = Type.Object({ hostnames: Type.Array(Type.String()) }, closed);
export const HostnameParams = Type.Object({ app_name: Type.String(), hostname: Type.String() }, closed);

/** A release begins. */
export const CreateReleaseBody = Type.Object(
  {
    image: Type.String({ minLength: 1, maxLength: 1024 }),
    description: Type.Optional(Type.String({ maxLength: 500 })),
  },
  closed,
);
/** A release ended. */
export const UpdateReleaseBody = Type.Object(
  {
    status: Type.Union([Type.Literal("complete"), Type.Literal("failed")]),
    description: Type.Optional(Type.String({ maxLength: 500 })),
  },
  closed,
);
export const ReleaseParams = Type.Object(
  { app_name: Type.String(), version: Type.String({ pattern: "^[1-9]\\d{0,8}$" }) },
  closed,
);

/** A volume of an app. */
const volumeWord = Type.String({
  description: "a volume's id, its name if no other has it, or the beginning of its id, with or without `vol_`",
});
export const VolumeParams = Type.Object({ app_name: Type.String(), volume_id: volumeWord }, closed);
export const VolumeSnapshotParams = Type.Object(
  { app_name: Type.String(), volume_id: volumeWord, snapshot_id: Type.String() },
  closed,
);
export const VolumeReply = named("Volume", Volume);
export const VolumeList = Type.Array(VolumeReply);
export const VolumeSnapshotReply = named("VolumeSnapshot", VolumeSnapshot);
export const VolumeSnapshotList = Type.Array(VolumeSnapshotReply);
/** A new volume. */
export const CreateVolumeBody = Type.Object(
  {
    name: Type.String({ maxLength: 64, description: "1 to 30 of a-z, 0-9 and _" }),
    size_gb: Type.Optional(Type.Integer({ ...VOLUME_GB, description: "default: the snapshot's, else 1" })),
    region: Type.Optional(Type.String({ maxLength: 64, description: "the one there is" })),
    snapshot_id: Type.Optional(Type.String({ maxLength: 64, description: "begin with what this snapshot holds" })),
    snapshot_retention: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 60, description: "days that its snapshots are kept; default: 5" }),
    ),
  },
  closed,
);
/** A larger size. */
export const ExtendVolumeBody = Type.Object({ size_gb: Type.Integer(VOLUME_GB) }, closed);
export const ExtendVolumeReply = Type.Object(
  {
    volume: VolumeReply,
    needs_restart: Type.Boolean({ description: "its machine sees the new size at its next cold start only" }),
  },
  closed,
);

/** A secret of an app: everything but its value. */
const Secret = Type.Object({ name: Type.String(), digest: Type.String(), updated_at: time }, closed);
export const SecretList = Type.Object({ secrets: Type.Array(Secret) }, closed);
export const SecretParams = Type.Object({ app_name: Type.String(), secret_name: Type.String() }, closed);
export const SecretsBody = Type.Object(
  {
    secrets: Type.Record(Type.String(), Type.String(), {
      description: "values by the names of environment variables; none of HIBERNAUT_* and FLY_*",
    }),
  },
  closed,
);
/** What a change of secrets means to machines, by id. */
export const SecretsEffect = Type.Object(
  {
    discarded: Type.Array(Type.String(), { description: "slept; their snapshots are gone and they start cold" }),
    pending: Type.Array(Type.String(), { description: "run; they see the change after a restart" }),
  },
  closed,
);
/** `?dry_run=true` */
export const DryRunQuery = Type.Object(
  { dry_run: Type.Optional(Type.Boolean({ description: "only say what would happen; default: false" })) },
  closed,
);

/** An image to have ready. */
export const PullBody = Type.Object({ ref: Type.String({ minLength: 1, maxLength: 4096 }) }, closed);
const digest = Type.String({ pattern: "^sha256:[0-9a-f]{64}$" });
const bytes = Type.Integer({ minimum: 0 });
const PULL_STEPS = ["resolve", "copy", "unpack", "pack"] as const;
/** One line of a pull. The last one has `done` or `error`. */
export const PullEvent = Type.Union([
  Type.Object({ step: Type.Unsafe<(typeof PULL_STEPS)[number]>({ type: "string", enum: [...PULL_STEPS] }) }, closed),
  Type.Object(
    {
      step: Type.Literal("download"),
      layer: digest,
      done_bytes: bytes,
      total_bytes: bytes,
      image_done_bytes: Type.Integer({ description: "all layers together" }),
      image_total_bytes: bytes,
    },
    closed,
  ),
  Type.Object({ done: Type.Literal(true), ref: Type.String(), digest, size_bytes: bytes }, closed),
  named("Error", Failure),
]);
export const ImageList = Type.Object(
  {
    images: Type.Array(
      Type.Object(
        {
          digest,
          ref: nullable(Type.String({ description: "the reference that brought it" })),
          size_bytes: bytes,
          imported_at: time,
          in_use: Type.Boolean({ description: "whether a machine needs it" }),
        },
        closed,
      ),
    ),
  },
  closed,
);
/** `?unused=true` */
export const PruneQuery = Type.Object(
  { unused: Type.Literal("true", { description: "only these can be deleted: the images that no machine needs" }) },
  closed,
);
export const PruneReply = Type.Object(
  { deleted: Type.Array(digest), freed_bytes: Type.Integer({ description: "with the downloaded layers" }) },
  closed,
);

/** A registry, as images name it. */
export const RegistryParams = Type.Object({ host: Type.String() }, closed);
/** A login; it goes in and never comes out. */
export const RegistryBody = Type.Object(
  {
    username: Type.String({ minLength: 1, maxLength: 16_384 }),
    password: Type.String({ minLength: 1, maxLength: 16_384, writeOnly: true }),
  },
  closed,
);
export const RegistryReply = Type.Object({ host: Type.String(), username: Type.String() }, closed);
export const RegistryList = Type.Object({ registries: Type.Array(RegistryReply) }, closed);

/** A changed machine. */
export const UpdateMachineBody = Type.Object(
  { config: Type.Optional(MachineConfig) },
  {
    ...closed,
    description:
      "The full new configuration. Without `config` the machine moves to the current guest bundle, image and configuration unchanged.",
  },
);

/** A new token. */
export const CreateTokenBody = Type.Object({ name: Type.String({ minLength: 1, maxLength: 100 }) }, closed);

/** The replies of a route whose good one is no JSON document: a stream, or another protocol. */
export function streams(status: number, type: string, description: string) {
  return { [status]: { description, content: { [type]: { schema: {} } } }, default: named("Error", Failure) };
}

/** The replies of a route: the good one, and the errors that any route may give. */
export function replies<const Status extends number, T extends TSchema>(status: Status, schema: T) {
  return { [status]: schema, default: named("Error", Failure) } as { [K in Status]: T } & { default: TSchema };
}
