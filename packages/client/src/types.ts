/** What goes over the wire, as `GET /openapi.json` says it. Times are RFC 3339. */

/** Where a machine is in its life. */
export type MachineState =
  | "created"
  | "running"
  | "suspended"
  | "stopped"
  | "failed"
  | "restarting"
  | "starting"
  | "suspending"
  | "stopping"
  | "updating"
  | "destroying"
  | "destroyed";

/** An app that ended by itself. */
export interface Crash {
  at: string;
  /** E.g. `the app exited with code 1`. */
  reason: string;
  /** Null when the virtual machine vanished. */
  exit_code: number | null;
  /** It ended before it listened on its ports. */
  at_start: boolean;
  /** The start that follows is this attempt, from 1, of at most `max_attempts`. */
  attempt: number;
  max_attempts: number;
  /** When that start is due; null when the restart policy gives it none. */
  retry_at: string | null;
}

/** What `wait` waits for; `settled` is any state in which a machine rests. */
export type WaitState =
  | "running"
  | "stopped"
  | "suspended"
  | "destroyed"
  | "failed"
  | "created"
  | "restarting"
  | "settled";

/** A port of the app, and what the proxy does about it. */
export interface ServiceConfig {
  protocol?: "tcp" | "http";
  internal_port: number;
  autostop?: "suspend" | "stop" | "off";
  autostart?: boolean;
  min_machines_running?: number;
  /** Seconds. */
  idle_timeout?: number;
  concurrency?: { type?: "requests" | "connections"; soft_limit?: number; hard_limit?: number };
}

/** What a machine runs, and how. */
export interface MachineConfig {
  image: string;
  guest?: { cpus?: number; memory_mb?: number };
  env?: Record<string, string>;
  init?: { entrypoint?: string[]; cmd?: string[]; exec?: string[]; swap_size_mb?: number };
  services?: ServiceConfig[];
  checks?: Record<string, CheckConfig>;
  restart?: { policy?: "no" | "on-failure" | "always"; max_retries?: number };
  /** `timeout` in seconds. */
  stop_config?: { signal?: string; timeout?: number };
  /** Seconds that the app gets to prepare for a suspend; 0 or absent: it is not asked. */
  suspend_config?: { timeout?: number };
  mounts?: Mount[];
  metadata?: Record<string, string>;
  schedule?: "hourly" | "daily" | "weekly" | "monthly";
}

/** A volume of a machine. One of `volume` and `source` names it. */
export interface Mount {
  /** Name or id; in replies the id. */
  volume?: string;
  source?: string;
  /** In replies: the volume's name. */
  name?: string;
  path: string;
  /** Of a volume that has to be made; 1 when absent. */
  size_gb?: number;
}

/** A disk that outlives machines. */
export interface Volume {
  id: string;
  /** Several volumes of an app may have the same. */
  name: string;
  state: "creating" | "created" | "destroying";
  size_gb: number;
  /** What it takes on the disk; it grows with what was written. */
  used_bytes: number;
  region: string;
  encrypted: false;
  /** The one machine that has it. */
  attached_machine_id: string | null;
  /** Days that its snapshots are kept. */
  snapshot_retention: number;
  created_at: string;
}

/** What a volume is made with. */
export interface CreateVolume {
  name: string;
  /** The snapshot's, else 1, when absent. */
  size_gb?: number;
  region?: string;
  /** Begin with what this snapshot holds. */
  snapshot_id?: string;
  /** Days; 5 when absent. */
  snapshot_retention?: number;
}

/** A volume as it was at one moment. */
export interface VolumeSnapshot {
  id: string;
  status: "creating" | "created" | "destroying";
  /** Bytes that it takes on the disk, where it shares none with the volume. */
  size: number;
  /** GB; a volume that is made of it has as much or more. */
  volume_size: number;
  retention_days: number;
  created_at: string;
}

/** What one check of a machine last found. */
export interface CheckResult {
  name: string;
  /** `warning`: it has not passed yet, within its grace period. */
  status: "passing" | "warning" | "critical";
  output: string;
  updated_at: string;
}

/** How a machine is looked at. Times are seconds, or e.g. `15s`. */
export interface CheckConfig {
  type: "tcp" | "http";
  /** The first service's port when absent. */
  port?: number;
  interval?: number | string;
  timeout?: number | string;
  grace_period?: number | string;
  method?: string;
  path?: string;
  headers?: { name: string; values: string[] }[];
}

/** A machine as the platform knows it. */
export interface Machine {
  machine_id: string;
  /** The same as `machine_id`. */
  id: string;
  app_name: string;
  name: string;
  state: MachineState;
  /** The fault of `failed`, the exit of `stopped`. */
  state_reason: string | null;
  /** Why no request reaches the app that runs: it listens on another port, or on loopback; null when one does. */
  unreachable: string | null;
  region: string;
  version: string;
  config: MachineConfig;
  image: { ref: string; digest: string };
  /** What its checks last found; empty unless it runs. */
  checks: CheckResult[];
  suspend: { eligible: boolean; reasons: string[] };
  snapshot: { created_at: string; size_bytes: number } | null;
  last_boot: { kind: "resume" | "cold"; reason: string; at: string; duration_ms: number } | null;
  /** The app asked not to be put to sleep for being idle. */
  keep_awake: { until: string; reason: string } | null;
  /** How the app last ended by itself, and when it is started again; null while it runs, or when nothing went wrong. */
  crash: Crash | null;
  private_address: string;
  created_at: string;
  updated_at: string;
}

/** One entry of a machine's history. */
export interface MachineEvent {
  at: string;
  type: string;
  from: MachineState | null;
  to: MachineState;
  details: Record<string, unknown>;
}

/** Where a line of a log comes from: the app, the image's hooks, or the platform. */
export type LogStream = "stdout" | "stderr" | "hooks" | "platform";

/** A line of a machine's log. */
export interface LogEntry {
  at: string;
  /** Id of the machine. */
  machine: string;
  stream: LogStream;
  text: string;
}

/** A name that owns machines and routing. */
export interface App {
  name: string;
  created_at: string;
  machine_count: number;
  /** Where the proxy answers for it, as far as the platform knows for sure. */
  urls: string[];
}

/** What was deployed to an app. */
export interface Release {
  version: number;
  status: "pending" | "complete" | "failed";
  image: { ref: string; digest: string };
  description: string;
  created_at: string;
}

/** A secret of an app, without its value. */
export interface Secret {
  name: string;
  /** Equal for equal values. */
  digest: string;
  updated_at: string;
}

/** What a change of an app's secrets means to its machines, by id. */
export interface SecretsEffect {
  /** Slept; their snapshots are gone, and they start from scratch next time. */
  discarded: string[];
  /** Run; they see the change after a restart. */
  pending: string[];
}

/** A token without its secret. */
export interface Token {
  id: string;
  name: string;
  created_at: string;
  revoked_at: string | null;
}

/** A token just made: the only moment at which `token` is readable. */
export interface NewToken {
  id: string;
  name: string;
  token: string;
  created_at: string;
}

/** A place where machines run. */
export interface Region {
  code: string;
  name: string;
}

/** What the platform is, and that it works. */
export interface Health {
  status: "ok";
  version: string;
  region: string;
  hypervisor: string;
  hypervisor_version: string;
  accelerator: string;
  accelerator_reason: string;
  /** Where the proxy listens; null when proxies run in processes of their own. */
  proxy_url: string | null;
  guest_bundle: string;
  /** How machines are connected (`bridge` or `user`), and why so. */
  network: { mode: string; reason: string };
}

/** A command that is answered whole. */
export interface Exec {
  command: string[];
  stdin?: string;
  /** Seconds; 60 when absent. */
  timeout?: number;
  env?: Record<string, string>;
  /** user[:group] */
  user?: string;
  workdir?: string;
}

/** How a command ended, with the first 1 MiB of each output. */
export interface ExecResult {
  /** 128 + the signal when one ended it; 126 or 127 when it could not be run. */
  exit_code: number;
  /** 0 for none. */
  exit_signal: number;
  stdout: string;
  stderr: string;
  timed_out: boolean;
  truncated: boolean;
}

/** How far a pull is. */
export type PullProgress =
  | { step: "resolve" | "copy" | "unpack" | "pack" }
  | {
      step: "download";
      /** Digest of the layer this is about. */
      layer: string;
      done_bytes: number;
      total_bytes: number;
      /** All layers of the image together. */
      image_done_bytes: number;
      image_total_bytes: number;
    };

/** An image that is ready. */
export interface PulledImage {
  ref: string;
  digest: string;
  size_bytes: number;
}

/** An image on the platform's disk. */
export interface StoredImage {
  digest: string;
  /** The reference that brought it. */
  ref: string | null;
  size_bytes: number;
  imported_at: string;
  /** Whether a machine needs it. */
  in_use: boolean;
}

/** What the platform is at a registry, without the password. */
export interface RegistryLogin {
  host: string;
  username: string;
}

/** What a new machine is made from. */
export interface CreateMachine {
  name?: string;
  region?: string;
  config: MachineConfig;
  skip_launch?: boolean;
}
