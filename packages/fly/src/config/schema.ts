/** What is read of a machine's configuration as Fly's clients send it. Other keys may be there, too: they are kept. */
import { type Static, Type } from "typebox";

/** Fly's clients send nanoseconds, or a text such as `15s`. */
const Duration = Type.Union([Type.Number({ minimum: 0, maximum: 1e15 }), Type.String({ maxLength: 50 })]);
const Words = Type.Array(Type.String(), { maxItems: 256 });
/** More variables, labels or checks than any program has. Each is looked at several times. */
const MOST_KEYS = 2000;
const Env = Type.Record(Type.String(), Type.String(), { maxProperties: MOST_KEYS });
const Port = Type.Integer({ minimum: 1, maximum: 65_535 });
/** Whatever it holds: what is not read is only looked at for whether it is there. */
const Anything = Type.Unknown();
const optional = Type.Optional;

const Header = Type.Object({ name: Type.String(), values: optional(Type.Array(Type.String())) });

export const FlyCheck = Type.Object({
  type: optional(Type.String()),
  port: optional(Port),
  interval: optional(Duration),
  timeout: optional(Duration),
  grace_period: optional(Duration),
  method: optional(Type.String()),
  path: optional(Type.String()),
  protocol: optional(Type.String()),
  headers: optional(Type.Array(Header)),
});

const FlyPort = Type.Object({
  port: optional(Port),
  start_port: optional(Port),
  end_port: optional(Port),
  handlers: optional(Type.Array(Type.String(), { maxItems: 8 })),
  force_https: optional(Type.Boolean()),
  http_options: optional(
    Type.Object({
      h2_backend: optional(Type.Boolean()),
      response: optional(Type.Object({ headers: optional(Type.Record(Type.String(), Anything)) })),
    }),
  ),
  proxy_proto_options: optional(Type.Object({ version: optional(Type.String()) })),
});

export const FlyService = Type.Object({
  protocol: optional(Type.String()),
  internal_port: Port,
  autostop: optional(Type.Union([Type.Boolean(), Type.String()])),
  autostart: optional(Type.Boolean()),
  min_machines_running: optional(Type.Integer()),
  ports: optional(Type.Array(FlyPort, { maxItems: 32 })),
  checks: optional(Type.Array(FlyCheck, { maxItems: 16 })),
  // Of the platform: Fly has no word for it.
  idle_timeout: optional(Type.Integer()),
  concurrency: optional(
    Type.Object({
      type: optional(Type.String()),
      soft_limit: optional(Type.Integer()),
      hard_limit: optional(Type.Integer()),
    }),
  ),
});

const FlyProcess = Type.Object({
  exec: optional(Words),
  entrypoint: optional(Words),
  cmd: optional(Words),
  env: optional(Env),
  user: optional(Type.String()),
  secrets: optional(Type.Array(Anything)),
  env_from: optional(Type.Array(Anything)),
});

export const FlyConfig = Type.Object({
  image: optional(Type.String({ maxLength: 1024 })),
  env: optional(Env),
  init: optional(
    Type.Object({
      exec: optional(Words),
      entrypoint: optional(Words),
      cmd: optional(Words),
      swap_size_mb: optional(Type.Integer()),
    }),
  ),
  guest: optional(
    Type.Object({
      cpus: optional(Type.Integer()),
      memory_mb: optional(Type.Integer()),
      gpus: optional(Type.Integer()),
      gpu_kind: optional(Type.String()),
      persist_rootfs: optional(Anything),
    }),
  ),
  size: optional(Type.String({ maxLength: 64 })),
  metadata: optional(Env),
  mounts: optional(
    Type.Array(Type.Object({ volume: optional(Type.String()), name: optional(Type.String()), path: Type.String() }), {
      maxItems: 8,
    }),
  ),
  services: optional(Type.Array(FlyService, { maxItems: 32 })),
  checks: optional(Type.Record(Type.String(), FlyCheck, { maxProperties: MOST_KEYS })),
  files: optional(
    Type.Array(
      Type.Object({
        guest_path: Type.String(),
        raw_value: optional(Type.String()),
        secret_name: optional(Type.String()),
        image_config: optional(Type.String()),
        mode: optional(Type.Integer()),
      }),
    ),
  ),
  schedule: optional(Type.String()),
  auto_destroy: optional(Type.Boolean()),
  restart: optional(Type.Object({ policy: optional(Type.String()), max_retries: optional(Type.Integer()) })),
  stop_config: optional(Type.Object({ signal: optional(Type.String()), timeout: optional(Duration) })),
  processes: optional(Type.Array(FlyProcess, { maxItems: 32 })),
  rootfs: optional(Type.Object({ persist: optional(Anything) })),
  disable_machine_autostart: optional(Type.Boolean()),
  containers: optional(Type.Array(Anything)),
  statics: optional(Type.Array(Anything)),
  volumes: optional(Type.Array(Anything)),
});

export type FlyCheck = Static<typeof FlyCheck>;
export type FlyPort = Static<typeof FlyPort>;
export type FlyService = Static<typeof FlyService>;
export type FlyConfig = Static<typeof FlyConfig>;
