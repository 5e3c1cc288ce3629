/**
 * The configuration of a machine, with the field names of Fly Machines. One schema serves as the validator, the
 * TypeScript type and the OpenAPI document.
 */
import { type Static, Type } from "typebox";
import {
  EGRESS_ENTRY_MAX_LENGTH,
  type Egress,
  type EgressConfig as EgressRules,
  egressOf,
  MAX_EGRESS_ENTRIES,
} from "./egress.ts";
import { schemasOf } from "./field-schemas.ts";
import { MACHINE_FIELDS } from "./fields.ts";
import { FileConfig, MAX_FILES } from "./guest-files.ts";
import {
  BACKUP_COMMAND_S,
  DEFAULT_CPUS,
  DEFAULT_MEMORY_MB,
  ENV_NAME_PATTERN,
  ENV_VALUE_MAX_LENGTH,
  FLY_CONFIG_MAX_LENGTH,
  MOST_BACKUP_COUNTS,
  RETENTION_DAYS,
  VOLUME_GB,
} from "./limits.ts";
import {
  METADATA_KEY_PATTERN,
  METADATA_VALUE_MAX_LENGTH,
  type MetadataChange,
  MOST_METADATA_KEYS,
  mergedMetadata,
} from "./metadata.ts";
import { SCHEDULE_MAX_LENGTH } from "./schedule.ts";
import { CheckConfig, ServiceConfig } from "./service-config.ts";

const closed = { additionalProperties: false } as const;

/** Where a machine mounts a volume. */
export const MountConfig = Type.Object(
  {
    volume: Type.Optional(Type.String({ maxLength: 64, description: "Name or id of the volume. In replies, the id." })),
    source: Type.Optional(Type.String({ maxLength: 64, description: "The same as `volume`, as app files call it." })),
    name: Type.Optional(
      Type.String({ maxLength: 64, description: "In replies, the volume's name. Ignored in requests." }),
    ),
    path: Type.String({ maxLength: 1024, description: "Directory where the volume is mounted." }),
    size_gb: Type.Optional(
      Type.Integer({ ...VOLUME_GB, description: "GB, for a volume that has yet to be created. Default: 1." }),
    ),
    snapshot_retention: Type.Optional(
      Type.Integer({
        ...RETENTION_DAYS,
        description: "Days that snapshots of a volume that has yet to be created are kept. Default: 5.",
      }),
    ),
    scheduled_snapshots: Type.Optional(
      Type.Boolean({
        description:
          "Whether the platform takes snapshots by itself of a volume that has yet to be created. Default: as its settings say.",
      }),
    ),
  },
  { ...closed, title: "MountConfig" },
);

const egressEntries = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: EGRESS_ENTRY_MAX_LENGTH }), {
      maxItems: MAX_EGRESS_ENTRIES,
      description,
    }),
  );

/** Where a machine may connect to. */
export const EgressConfig = Type.Object(
  {
    default: Type.Optional(
      Type.Union([Type.Literal("allow"), Type.Literal("deny")], {
        description: "What holds for all that neither list names. Default: allow.",
      }),
    ),
    allow: egressEntries(
      "Addresses (192.0.2.7), networks (192.0.2.0/24) and, with `default: deny`, names (api.example.com, *.example.com). They come before `deny`.",
    ),
    deny: egressEntries("Addresses and networks."),
  },
  { ...closed, title: "EgressConfig" },
);

const command = (description: string) =>
  Type.Array(Type.String({ maxLength: 8192 }), { minItems: 1, maxItems: 256, description });

/** What the app does for its backups, and how a drill sees that one is worth something. */
export const BackupConfig = Type.Object(
  {
    command: Type.Optional(
      command("Run in the machine before it is backed up, if it runs then: such as a dump of a database to a volume."),
    ),
    timeout: Type.Optional(
      Type.Integer({ ...BACKUP_COMMAND_S, description: "Seconds that the command may take. Default: 600." }),
    ),
    counts: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,31}$", description: "What is counted." }),
            command: command("Run in the restored machine. It prints one number."),
            minimum: Type.Optional(
              Type.Integer({ minimum: 0, description: "The drill fails if there are fewer. Default: 1." }),
            ),
          },
          closed,
        ),
        { maxItems: MOST_BACKUP_COUNTS, description: "What a drill counts in the restored machine." },
      ),
    ),
  },
  { ...closed, title: "BackupConfig" },
);

/** Words for programs, which have no effect on the machine. */
export const MachineMetadata = Type.Record(
  Type.String({ pattern: METADATA_KEY_PATTERN }),
  Type.String({ maxLength: METADATA_VALUE_MAX_LENGTH }),
  {
    ...closed,
    maxProperties: MOST_METADATA_KEYS,
    description: "For programs, such as which release a machine belongs to. The machine itself does not see it.",
  },
);

/** The configuration of a machine, as clients send and receive it. */
export const MachineConfig = Type.Object(
  {
    image: Type.String({
      minLength: 1,
      maxLength: 1024,
      description: "Reference or archive of the image, for example `oci:/srv/app:latest`.",
    }),
    guest: Type.Optional(Type.Object(schemasOf(MACHINE_FIELDS, "guest"), closed)),
    env: Type.Optional(
      Type.Record(
        Type.String({ pattern: ENV_NAME_PATTERN }),
        Type.String({ maxLength: ENV_VALUE_MAX_LENGTH, pattern: "^[^\\u0000]*$" }),
        closed,
      ),
    ),
    init: Type.Optional(
      Type.Object(
        {
          entrypoint: Type.Optional(Type.Array(Type.String({ maxLength: 8192 }), { maxItems: 256 })),
          cmd: Type.Optional(Type.Array(Type.String({ maxLength: 8192 }), { maxItems: 256 })),
          exec: Type.Optional(
            Type.Array(Type.String({ maxLength: 8192 }), {
              maxItems: 256,
              description: "Replaces both `entrypoint` and `cmd`.",
            }),
          ),
          ...schemasOf(MACHINE_FIELDS, "init"),
        },
        closed,
      ),
    ),
    services: Type.Optional(Type.Array(ServiceConfig, { maxItems: 32 })),
    checks: Type.Optional(
      Type.Record(Type.String({ minLength: 1, maxLength: 64 }), CheckConfig, {
        maxProperties: 16,
        description: "Health checks by name. The machine gets requests only while all of them pass.",
      }),
    ),
    restart: Type.Optional(
      Type.Object(
        {
          policy: Type.Optional(Type.Union([Type.Literal("no"), Type.Literal("on-failure"), Type.Literal("always")])),
          ...schemasOf(MACHINE_FIELDS, "restart"),
        },
        closed,
      ),
    ),
    stop_config: Type.Optional(Type.Object(schemasOf(MACHINE_FIELDS, "stop_config"), closed)),
    suspend_config: Type.Optional(Type.Object(schemasOf(MACHINE_FIELDS, "suspend_config"), closed)),
    ...schemasOf(MACHINE_FIELDS, ""),
    mounts: Type.Optional(
      Type.Array(MountConfig, { maxItems: 8, description: "Volumes. No other machine can use them meanwhile." }),
    ),
    files: Type.Optional(
      Type.Array(FileConfig, {
        maxItems: MAX_FILES,
        description: "Files that are written into the machine at every cold start, before its app starts.",
      }),
    ),
    network: Type.Optional(
      Type.Object(
        { egress: Type.Optional(EgressConfig) },
        {
          ...closed,
          description:
            "Where the machine may connect to. Only for machines on a bridge. Default: as the network's documents say.",
        },
      ),
    ),
    backup: Type.Optional(BackupConfig),
    metadata: Type.Optional(MachineMetadata),
    fly_config: Type.Optional(
      Type.String({
        maxLength: FLY_CONFIG_MAX_LENGTH,
        description:
          "The configuration as a client of Fly's API sent it, as JSON: given back to such clients, and without effect.",
      }),
    ),
    schedule: Type.Optional(
      Type.String({
        maxLength: SCHEDULE_MAX_LENGTH,
        description:
          "When the machine is started: `hourly`, `daily`, `weekly` or `monthly`, counted from its creation, or a cron expression of five fields such as `0 3 * * *`.",
      }),
    ),
    schedule_timezone: Type.Optional(
      Type.String({
        maxLength: 64,
        description: "Time zone of `schedule`, by its name in the IANA database, such as Europe/Berlin. Default: UTC.",
      }),
    ),
  },
  { ...closed, title: "MachineConfig" },
);

export type BackupConfig = Static<typeof BackupConfig>;
export type MountConfig = Static<typeof MountConfig>;
export type MachineConfig = Static<typeof MachineConfig>;
/** How an app is asked to exit, and how long it has until it is killed. */
export type StopConfig = NonNullable<MachineConfig["stop_config"]>;

/** Returns the swap of the machine, in MB. */
export function swapMbOf(config: MachineConfig): number {
  return config.init?.swap_size_mb ?? 0;
}

/** Returns CPUs and memory, with the defaults filled in. */
export function guestSize(config: MachineConfig): { cpus: number; memoryMb: number } {
  return { cpus: config.guest?.cpus ?? DEFAULT_CPUS, memoryMb: config.guest?.memory_mb ?? DEFAULT_MEMORY_MB };
}

/** Returns how long the app may prepare for a suspend, in milliseconds. 0 means that it is not asked. */
export function readyTimeoutMs(config: MachineConfig): number {
  return (config.suspend_config?.timeout ?? 0) * 1000;
}

/** Returns the configuration with these rules for what the machine connects to, or with none. */
export function withEgress({ network: _network, ...config }: MachineConfig, egress: EgressRules | null): MachineConfig {
  return egress === null ? config : { ...config, network: { egress } };
}

/** Returns the configuration with its metadata changed, and without any when nothing is left of it. */
export function withMetadata({ metadata: before, ...config }: MachineConfig, change: MetadataChange): MachineConfig {
  const metadata = mergedMetadata(before, change);
  return Object.keys(metadata).length === 0 ? config : { ...config, metadata };
}

/** Returns what the machine's rules for its own connections come to. Undefined when it has none. */
export function machineEgress({ network }: MachineConfig): Egress | undefined {
  return network?.egress === undefined ? undefined : egressOf(network.egress);
}

/** Returns the ports of the machine's services, each once, in order. */
export function servicePorts(config: MachineConfig): number[] {
  return [...new Set((config.services ?? []).map((service) => service.internal_port))];
}
