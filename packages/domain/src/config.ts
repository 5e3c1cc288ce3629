/**
 * The configuration of a machine, with the field names of Fly Machines. One schema serves as the validator, the
 * TypeScript type and the OpenAPI document.
 */
import { constants } from "node:os";
import { type Static, Type } from "typebox";
import { checkTimeRefusal } from "./check-times.ts";
import { HibernautError } from "./errors.ts";
import { FileConfig, filesRefusal, MAX_FILES } from "./guest-files.ts";
import { mountPathRefusal } from "./guest-paths.ts";
import {
  CPUS,
  ENV_NAME_PATTERN,
  ENV_VALUE_MAX_LENGTH,
  IDLE_TIMEOUT_S,
  KEEP_WARM_S,
  MEMORY_MB,
  RETENTION_DAYS,
  STOP_TIMEOUT_S,
  SUSPEND_TIMEOUT_S,
  VOLUME_GB,
} from "./limits.ts";
import { NAME_PATTERN } from "./naming.ts";
import { MAX_RESPONSE_HEADERS, MAX_RESPONSE_VALUES, responseHeadersRefusal } from "./response-headers.ts";
import { SCHEDULE_MAX_LENGTH, scheduleRefusal } from "./schedule.ts";
import { handlersRefusal, PROXY_PROTOCOL_VERSIONS, TCP_HANDLERS } from "./tcp-handlers.ts";

const closed = { additionalProperties: false } as const;

const DEFAULT_MEMORY_MB = 256;
const DEFAULT_CPUS = 1;

/** How many apps one service may name in `replay_from`: every proxy keeps the list for every machine. */
const MAX_REPLAY_FROM = 100;

/** A port of the proxy for TCP connections. */
export const TcpPortConfig = Type.Object(
  {
    port: Type.Integer({ minimum: 1, maximum: 65_535 }),
    handlers: Type.Optional(
      Type.Array(Type.Enum([...TCP_HANDLERS]), {
        maxItems: TCP_HANDLERS.length,
        uniqueItems: true,
        description:
          "What the proxy does with a connection. `tls`: ends TLS with the certificate of the hostname. `pg_tls`: the same for PostgreSQL's clients. `tls_passthrough`: leaves TLS to the app. `proxy_proto`: begins with a header of the PROXY protocol, which names the client. With a handler for TLS, the hostname that the client names decides about the app, and apps may share the port. Default: none.",
      }),
    ),
    proxy_proto_options: Type.Optional(
      Type.Object(
        {
          version: Type.Optional(Type.Enum([...PROXY_PROTOCOL_VERSIONS], { description: "Default: v1." })),
        },
        closed,
      ),
    ),
  },
  closed,
);

/** A port of the machine that the proxy or the network forwards to, and when the machine sleeps and wakes. */
export const ServiceConfig = Type.Object(
  {
    protocol: Type.Optional(Type.Union([Type.Literal("tcp"), Type.Literal("http")], { description: "Default: tcp." })),
    internal_port: Type.Integer({ minimum: 1, maximum: 65_535, description: "The port that the app listens on." }),
    ports: Type.Optional(
      Type.Array(TcpPortConfig, {
        maxItems: 8,
        description:
          "For `tcp`: ports of the proxy whose connections lead here. Each belongs to one app of the platform, unless all apps that have it handle TLS there. Default: none.",
      }),
    ),
    autostop: Type.Optional(
      Type.Union([Type.Literal("suspend"), Type.Literal("stop"), Type.Literal("off")], {
        description: "What happens to the machine when it is idle. Default: off.",
      }),
    ),
    autostop_fallback: Type.Optional(
      Type.Union([Type.Literal("stop"), Type.Literal("off")], {
        description:
          "What happens with `autostop: suspend` to an idle machine that cannot be suspended. `stop`: it is stopped, and what it wrote to its file system is kept. `off`: it keeps running. Default: stop.",
      }),
    ),
    autostart: Type.Optional(Type.Boolean({ description: "Whether a request starts the machine. Default: true." })),
    min_machines_running: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1000,
        description: "Keep at least this many of the app's running machines awake. Starts none. Default: 0.",
      }),
    ),
    idle_timeout: Type.Optional(
      Type.Integer({
        ...IDLE_TIMEOUT_S,
        description: "Seconds without a request after which the machine is idle. Default: 300.",
      }),
    ),
    idle: Type.Optional(
      Type.Union([Type.Literal("open"), Type.Literal("quiet")], {
        description:
          "What a connection that stays open means, over TCP or upgraded. `open`: it keeps the machine awake. `quiet`: only while something passes through it; on a bridge, the connection survives the sleep, and what the client sends next wakes the machine. Default: open.",
      }),
    ),
    keep_warm: Type.Optional(
      Type.Integer({
        ...KEEP_WARM_S,
        description:
          "Seconds for which the paused virtual machine stays in memory after a suspend, next to the snapshot, so that the next start is faster. 0: not at all. Default: the platform's setting HIBERNAUT_KEEP_WARM.",
      }),
    ),
    placement: Type.Optional(
      Type.Union([Type.Literal("shared"), Type.Literal("pinned")], {
        description:
          "`shared`: the app's machines share its load. `pinned`: each machine has work of its own and sleeps by itself, and requests that name no machine go to the others. Default: shared.",
      }),
    ),
    machine_hostnames: Type.Optional(
      Type.Boolean({
        description:
          "Whether requests may choose the machine: by its own hostname, `<machine>.<app>.<suffix>` or `<port>--<machine>.<app>.<suffix>`, or by a header. Default: false.",
      }),
    ),
    replay_from: Type.Optional(
      Type.Array(Type.String({ pattern: NAME_PATTERN }), {
        maxItems: MAX_REPLAY_FROM,
        description: "Other apps that may send their requests on to this one. Default: none.",
      }),
    ),
    force_https: Type.Optional(
      Type.Boolean({
        description:
          "Whether a request over plain HTTP is redirected to HTTPS, if the proxy serves it. Default: false.",
      }),
    ),
    wake_page: Type.Optional(
      Type.Boolean({
        description:
          "Whether a browser that would wait for a cold start is shown a page in the meantime, which reloads itself. Default: false.",
      }),
    ),
    http_options: Type.Optional(
      Type.Object(
        {
          h2_backend: Type.Optional(
            Type.Boolean({
              description:
                "Whether the app speaks HTTP/2 without TLS (h2c with prior knowledge), as gRPC servers do, and gets its requests over it. Default: false.",
            }),
          ),
          response: Type.Optional(
            Type.Object(
              {
                headers: Type.Optional(
                  Type.Record(
                    Type.String(),
                    Type.Union([
                      Type.String(),
                      Type.Array(Type.String(), { maxItems: MAX_RESPONSE_VALUES }),
                      Type.Literal(false),
                    ]),
                    {
                      maxProperties: MAX_RESPONSE_HEADERS,
                      description: "Headers that replace those of the app in its responses; false removes one.",
                    },
                  ),
                ),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
    concurrency: Type.Optional(
      Type.Object(
        {
          type: Type.Optional(Type.Union([Type.Literal("requests"), Type.Literal("connections")])),
          soft_limit: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 1_000_000,
              description: "Load at which another machine of the app is started. Default: 20.",
            }),
          ),
          hard_limit: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 1_000_000,
              description: "Load at which the machine gets no more requests. Default: none.",
            }),
          ),
        },
        closed,
      ),
    ),
  },
  { ...closed, title: "ServiceConfig" },
);

const duration = (text: string) =>
  Type.Union(
    [Type.Integer({ minimum: 1, maximum: 3600 }), Type.String({ pattern: "^\\d{1,6}(?:ms|s|m|h)$", maxLength: 9 })],
    { description: `${text} A number of seconds, or a text such as "15s".` },
  );

const HeaderName = Type.String({ pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", maxLength: 128 });
const HeaderValue = Type.String({ pattern: "^[\\t\\x20-\\x7e]*$", maxLength: 1024 });

/** A health check. */
export const CheckConfig = Type.Object(
  {
    type: Type.Union([Type.Literal("tcp"), Type.Literal("http")]),
    port: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 65_535, description: "Default: `internal_port` of the first service." }),
    ),
    interval: Type.Optional(duration("Time between two checks, from 100ms to 1h. Default: 15s.")),
    timeout: Type.Optional(duration("Time limit of one check, from 100ms to 1h. Default: 5s.")),
    grace_period: Type.Optional(duration("Time after a start in which failures don't count, up to 1h. Default: 10s.")),
    method: Type.Optional(Type.String({ pattern: "^[A-Za-z]{1,16}$", description: "For `http`. Default: GET." })),
    path: Type.Optional(Type.String({ pattern: "^/", maxLength: 2048, description: "For `http`. Default: /." })),
    headers: Type.Optional(
      Type.Array(
        Type.Object({ name: HeaderName, values: Type.Array(HeaderValue, { minItems: 1, maxItems: 8 }) }, closed),
        { maxItems: 32 },
      ),
    ),
  },
  { ...closed, title: "CheckConfig" },
);

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

/** The configuration of a machine, as clients send and receive it. */
export const MachineConfig = Type.Object(
  {
    image: Type.String({
      minLength: 1,
      maxLength: 1024,
      description: "Reference or archive of the image, for example `oci:/srv/app:latest`.",
    }),
    guest: Type.Optional(
      Type.Object(
        {
          cpus: Type.Optional(Type.Integer({ ...CPUS, default: DEFAULT_CPUS })),
          memory_mb: Type.Optional(Type.Integer({ ...MEMORY_MB, default: DEFAULT_MEMORY_MB })),
        },
        closed,
      ),
    ),
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
          swap_size_mb: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: 32_768,
              description: "Swap on the machine's writable layer, which grows by as much. Default: 0.",
            }),
          ),
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
          max_retries: Type.Optional(
            Type.Integer({ minimum: 0, maximum: 1000, description: "Number of restarts. Default: 10." }),
          ),
        },
        closed,
      ),
    ),
    stop_config: Type.Optional(
      Type.Object(
        {
          signal: Type.Optional(
            Type.String({ pattern: "^SIG[A-Z0-9]+$", description: "Default: the image's, otherwise SIGTERM." }),
          ),
          timeout: Type.Optional(
            Type.Integer({ ...STOP_TIMEOUT_S, description: "Seconds until SIGKILL. Default: 5." }),
          ),
        },
        closed,
      ),
    ),
    on_host_loss: Type.Optional(
      Type.Union([Type.Literal("wait"), Type.Literal("recreate")], {
        description:
          "In a cluster, what happens when the machine's host is lost. `wait`: nothing, until you evacuate the host. `recreate`: another host starts the machine from scratch. A machine with a volume always waits. Default: wait.",
      }),
    ),
    keep_layer: Type.Optional(
      Type.Boolean({
        description:
          "Whether a stop or a restart keeps what the machine wrote to its file system. An update never does. Default: false.",
      }),
    ),
    suspend_config: Type.Optional(
      Type.Object(
        {
          timeout: Type.Optional(
            Type.Integer({
              ...SUSPEND_TIMEOUT_S,
              description:
                "Seconds that the app and the programs in /etc/hibernaut/hooks/pre-suspend.d have to prepare for a suspend. Default: 0, they are not asked.",
            }),
          ),
        },
        closed,
      ),
    ),
    mounts: Type.Optional(
      Type.Array(MountConfig, { maxItems: 8, description: "Volumes. No other machine can use them meanwhile." }),
    ),
    files: Type.Optional(
      Type.Array(FileConfig, {
        maxItems: MAX_FILES,
        description: "Files that are written into the machine at every cold start, before its app starts.",
      }),
    ),
    metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
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

export type CheckConfig = Static<typeof CheckConfig>;
export type TcpPortConfig = Static<typeof TcpPortConfig>;
export type ServiceConfig = Static<typeof ServiceConfig>;
export type MountConfig = Static<typeof MountConfig>;
export type MachineConfig = Static<typeof MachineConfig>;

/** Checks what the schema cannot. Throws `invalid_argument`, with the field in the details. */
export function requireSupported(config: MachineConfig): void {
  const refuse = (field: string, message: string) => {
    throw new HibernautError("invalid_argument", message, { field: `config.${field}` });
  };
  for (const [index, mount] of (config.mounts ?? []).entries())
    refuseMount(mount, (config.mounts ?? []).slice(0, index), (message) => refuse(`mounts[${index}]`, message));
  for (const [index, service] of (config.services ?? []).entries())
    refuseImpossible(service, `services[${index}]`, refuse);
  refuseTwice(config, refuse);
  for (const [name, check] of Object.entries(config.checks ?? {})) {
    const time = checkTimeRefusal(check);
    if (time !== undefined) refuse(`checks.${name}.${time.key}`, time.message);
  }
  const file = filesRefusal(config.files ?? []);
  if (file !== undefined) refuse(file.field, file.message);
  const schedule = scheduleRefusal(config);
  if (schedule !== undefined) refuse(schedule.key, schedule.message);
  const signal = config.stop_config?.signal;
  if (signal !== undefined && !(signal in constants.signals)) {
    refuse("stop_config.signal", `${signal} is not a valid signal. Use one of signal(7), such as SIGTERM or SIGINT.`);
  }
}

function refuseMount(
  { volume, source, path }: MountConfig,
  before: readonly MountConfig[],
  refuse: (message: string) => void,
): void {
  if (volume === undefined && source === undefined)
    refuse("`volume` is missing. Set it to the name or id of a volume.");
  if (volume !== undefined && source !== undefined && volume !== source)
    refuse("`volume` and `source` differ. Send one of them.");
  const reason = mountPathRefusal(
    path,
    before.map((other) => other.path),
  );
  if (reason !== undefined) refuse(reason);
}

/** Refuses values that are each valid but cannot work together. */
function refuseImpossible(
  { concurrency = {}, protocol = "tcp", ports = [], http_options: options = {} }: ServiceConfig,
  field: string,
  refuse: (field: string, message: string) => void,
): void {
  const header = responseHeadersRefusal(options.response?.headers ?? {});
  if (header !== undefined) refuse(`${field}.http_options.response.headers.${header.name}`, header.message);
  if (protocol === "http" && ports.length > 0)
    refuse(
      `${field}.ports`,
      "A service with `protocol: http` answers at the proxy's own ports. Leave `ports` out, or use `protocol: tcp`.",
    );
  for (const [index, { handlers = [], proxy_proto_options: proxyOptions }] of ports.entries()) {
    const reason = handlersRefusal(handlers, proxyOptions !== undefined);
    if (reason !== undefined) refuse(`${field}.ports[${index}].handlers`, reason);
  }
  const { soft_limit: soft, hard_limit: hard } = concurrency;
  if (soft !== undefined && hard !== undefined && soft > hard)
    refuse(
      `${field}.concurrency`,
      `\`soft_limit\` (${soft}) is higher than \`hard_limit\` (${hard}), so no machine would ever reach it. Set it to ${hard} or less.`,
    );
}

/** A connection can lead to one port of a machine only. */
function refuseTwice({ services = [] }: MachineConfig, refuse: (field: string, message: string) => void): void {
  const seen = new Set<number>();
  for (const [index, { ports = [] }] of services.entries())
    for (const { port } of ports) {
      if (seen.has(port)) refuse(`services[${index}].ports`, `Port ${port} is listed twice. Remove one of them.`);
      seen.add(port);
    }
}

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

/** Returns the ports of the machine's services, each once, in order. */
export function servicePorts(config: MachineConfig): number[] {
  return [...new Set((config.services ?? []).map((service) => service.internal_port))];
}
