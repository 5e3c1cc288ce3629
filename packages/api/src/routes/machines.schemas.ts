/** Shapes of `/v1/apps/{app_name}/machines`. */
import { MachineConfig } from "@hibernaut/domain/config";
import { LEASE_TTL_S } from "@hibernaut/domain/lease";
import { type Static, Type } from "typebox";
import { closed, imageReference, machineState, nullable, oneOf, time } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";
import { environment } from "./exec.schemas.ts";
import { KeepAwake } from "./inside.schemas.ts";
import { SandboxBody, SandboxReply } from "./sandbox.schemas.ts";

const CheckResult = Type.Object(
  {
    name: Type.String(),
    status: oneOf(["passing", "warning", "critical"]),
    output: Type.String({ description: "What the check found, for people." }),
    updated_at: time,
  },
  {
    ...closed,
    title: "CheckResult",
    description: "What one check of a machine last found. `warning`: it hasn't passed yet, within its grace period.",
  },
);

const Crash = Type.Object(
  {
    at: time,
    reason: Type.String({ description: "How the app ended, for example `the app exited with code 1`." }),
    exit_code: nullable(Type.Integer(), "Null when the virtual machine vanished."),
    at_start: Type.Boolean({ description: "Whether the app ended before it listened on its ports." }),
    attempt: Type.Integer({ description: "Number of the start that follows, counted from 1." }),
    max_attempts: Type.Integer({ description: "`max_retries` of the restart policy." }),
    retry_at: nullable(time, "When that start is due. Null when the restart policy allows none."),
  },
  { ...closed, title: "Crash", description: "How an app ended by itself, and what follows." },
);

const LastBoot = Type.Object(
  {
    kind: oneOf(["warm", "resume", "cold"]),
    reason: Type.String({ description: "Why it was a cold start, or `snapshot`. Details follow a colon." }),
    at: time,
    duration_ms: Type.Number({ description: "Milliseconds." }),
  },
  {
    ...closed,
    description:
      "How the machine came up. `resume`: from its snapshot. `warm`: the same, from the paused virtual machine that was still in memory. `cold`: from scratch.",
  },
);

const Prewarm = Type.Object(
  {
    status: oneOf(["pending", "done", "taken", "failed"]),
    until: oneOf(["healthy", "prepared"]),
    reason: nullable(Type.String(), "For people. Null while it is pending."),
    since: time,
  },
  {
    ...closed,
    description:
      "The start of the new version that came with the last update. `pending`: the machine runs, or is about to, to sleep again with a snapshot. `done`: it did. `taken`: a request or a person needed the machine first. `failed`: the new version did not work, and the machine was stopped.",
  },
);

const Origin = Type.Object(
  {
    kind: oneOf(["fork", "template", "backup"]),
    machine_id: Type.String({ description: "The machine whose memory it began with. It may be gone." }),
    template: nullable(Type.String(), "The template's id. Null for the others."),
  },
  { ...closed, description: "What the machine was made from." },
);

/** Who has a lease, and until when. Never its nonce. */
export const leaseParts = {
  expires_at: time,
  owner: Type.String({ description: "The id of the token that took it." }),
  description: Type.String({ description: "What it is for. Empty if nobody said." }),
};

export const MachineReply = Type.Object(
  {
    machine_id: Type.String({ pattern: "^[0-9a-f]{14}$" }),
    id: Type.String({ description: "The same as `machine_id`." }),
    app_name: Type.String(),
    name: Type.String(),
    state: machineState,
    state_reason: nullable(Type.String(), "What went wrong (`failed`), or how the app ended (`stopped`)."),
    unreachable: nullable(
      Type.String(),
      "Why requests don't reach the running app: it listens on another port, or on loopback only. Also why a machine's host could not be asked. Null otherwise.",
    ),
    listening: Type.Optional(
      Type.Array(
        Type.Object(
          { address: Type.String({ description: "Such as `0.0.0.0`, `127.0.0.1` or `::`." }), port: Type.Integer() },
          closed,
        ),
        {
          description:
            "Where the programs of the running machine listen, while its app is `unreachable` because of that. Absent otherwise.",
        },
      ),
    ),
    cordoned: Type.Boolean({
      description: "Whether the proxy gives the machine no requests, and neither wakes it nor puts it to sleep.",
    }),
    region: Type.String(),
    host: Type.Optional(Type.String({ description: "The host that owns the machine. Absent outside of a cluster." })),
    host_state: Type.Optional(
      Type.Unsafe<"up" | "unreachable">({
        type: "string",
        enum: ["up", "unreachable"],
        description:
          "Only in a cluster. `unreachable`: the host is away, or could not be asked. In lists, the machine is shown as far as the other hosts know it then: `state` is what its host last published, `config` and `version` are those of its last update, and everything else is empty.",
      }),
    ),
    version: Type.String({ description: "A ULID that changes with every update." }),
    config: MachineConfig,
    image: imageReference,
    health: Type.Object(
      {
        status: oneOf(["healthy", "unhealthy", "unknown"]),
        reason: Type.String({ description: "What it is judged by, for people." }),
      },
      {
        ...closed,
        description:
          "Whether the running machine works. `healthy`: its app listens on the ports of its services, and all its checks pass. `unhealthy`: requests cannot reach it, or a check has failed. `unknown`: it is too early to tell, or the machine isn't running.",
      },
    ),
    checks: Type.Array(CheckResult, {
      description: "What the machine's checks last found. Empty unless the machine is running.",
    }),
    guest_bundle: Type.Object(
      {
        version: Type.String(),
        current: Type.Boolean({ description: "Whether it is the bundle that new machines boot from." }),
        update_pending: Type.Boolean({
          description: "The machine has a snapshot, and moves to the current bundle at its next cold start.",
        }),
      },
      { ...closed, description: "The kernel and agent that the machine boots from." },
    ),
    suspend: Type.Object(
      {
        eligible: Type.Boolean(),
        reasons: Type.Array(Type.String(), { description: "Why it can't be suspended, for people." }),
      },
      { ...closed, description: "Whether the machine can be suspended." },
    ),
    snapshot: nullable(
      Type.Object(
        {
          created_at: time,
          size_bytes: Type.Integer({ description: "Bytes that the snapshot takes on the host's disk." }),
          warm_until: nullable(
            time,
            "Until when the paused virtual machine stays in memory, so that a start takes milliseconds. Null if it does not.",
          ),
        },
        closed,
      ),
    ),
    last_boot: nullable(LastBoot),
    prewarm: nullable(Prewarm, "Null if the last update asked for none."),
    keep_awake: nullable(KeepAwake),
    lease: nullable(Type.Object(leaseParts, closed), "Who keeps other clients from changing it. Null if nobody does."),
    next_run: nullable(time, "When the schedule starts the machine next. Null without a schedule."),
    wake_at: nullable(time, "When the machine wakes if it sleeps by then, as a program in it asked."),
    crash: nullable(Crash),
    origin: nullable(Origin, "Null if the machine was not made from the memory of another one."),
    sandbox: nullable(SandboxReply, "Null if the machine is not a sandbox."),
    private_address: Type.String({ description: "The machine's IPv4 address in its app's network." }),
    created_at: time,
    updated_at: time,
    updating: Type.Optional(
      Type.Object(
        { version: Type.String(), config: MachineConfig },
        { ...closed, description: "What an update makes of the machine. Absent unless one is being carried out." },
      ),
    ),
    nonce: Type.Optional(
      Type.String({ description: "The nonce of the lease: only in the reply to a request with `lease_ttl`." }),
    ),
  },
  { ...closed, title: "Machine", description: "A virtual machine that runs one app." },
);

export const MachineList = Type.Array(MachineReply);

const MachineEvent = Type.Object(
  {
    at: time,
    type: Type.String({ description: "What happened, for example `suspend` or `app_ended`." }),
    from: nullable(machineState),
    to: machineState,
    details: Type.Record(Type.String(), Type.Unknown()),
  },
  { ...closed, title: "MachineEvent", description: "One entry of a machine's history." },
);

export const MachineEventList = Type.Array(MachineEvent);

export const MachineParams = Type.Object(
  {
    ...AppParams.properties,
    machine_id: Type.String({
      description: "The machine's id, its name, or the beginning of its id (at least 3 characters).",
    }),
  },
  closed,
);

export const CreateMachineBody = Type.Object(
  {
    name: Type.Optional(Type.String({ description: "Default: a generated name." })),
    region: Type.Optional(Type.String({ description: "The platform's only region." })),
    host: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          "In a cluster, the host to create the machine on. Default: one with room, where the app has the fewest machines.",
      }),
    ),
    config: Type.Optional(MachineConfig),
    template: Type.Optional(
      Type.String({
        description:
          "In place of `config`: the template whose memory, disk and configuration the machine begins with. Its id, its name, or the beginning of its id.",
      }),
    ),
    env: Type.Optional({
      ...environment,
      description: "With `template`: for programs that start later, in addition to the template's.",
    }),
    sandbox: Type.Optional({
      ...SandboxBody,
      description: "With `template`: the machine is a sandbox, which ends when its time is over.",
    }),
    skip_launch: Type.Optional(
      Type.Boolean({ description: "Leave the machine in `created` instead of starting it. Default: false." }),
    ),
    lease_ttl: Type.Optional(
      Type.Integer({
        ...LEASE_TTL_S,
        description:
          "Take a lease on the new machine that lasts this many seconds. The reply has its `nonce`. Default: none.",
      }),
    ),
    skip_service_registration: Type.Optional(
      Type.Boolean({
        description: "Create the machine cordoned: it gets no requests until it is uncordoned. Default: false.",
      }),
    ),
  },
  { ...closed, title: "CreateMachineRequest" },
);

export const UpdateMachineBody = Type.Object(
  {
    config: Type.Optional(MachineConfig),
    prewarm: Type.Optional(
      Type.Union([Type.Boolean(), Type.Literal("prepared")], {
        description:
          "Start a sleeping machine with the new configuration, and let it sleep again once it is `healthy`, so that the next wake finds a snapshot. `prepared`: not before a program in it has also said that it is. Has no effect on a running machine. Default: false.",
      }),
    ),
  },
  {
    ...closed,
    title: "UpdateMachineRequest",
    description:
      "The complete new configuration. Without `config`, the machine moves to the current guest bundle and keeps its image and configuration: at its next cold start, if it has a snapshot. Nothing changes if it has that bundle.",
  },
);

export type MachineWire = Static<typeof MachineReply>;

export type MachineEventWire = Static<typeof MachineEvent>;
