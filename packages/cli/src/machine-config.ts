/** Turns options of `machine create`, `run` and `update` into a configuration. */
import type { MachineConfig, MountConfig, ServiceConfig } from "@hibernaut/client";
import { IDLE_TIMEOUT_S, KEEP_WARM_S, STOP_TIMEOUT_S, SUSPEND_TIMEOUT_S } from "@hibernaut/domain/limits";
import { TCP_HANDLERS, type TcpHandler } from "@hibernaut/domain/tcp-handlers";
import type { Option, OptionValues } from "./command.ts";
import { UsageError } from "./failure.ts";
import { FILE_OPTIONS, withFileOptions } from "./machine-files.ts";

/** The options that describe a configuration. */
export const CONFIG_OPTIONS = [
  { flags: "--image <reference>", description: "image to run, such as oci:/srv/app:latest" },
  { flags: "-e, --env <NAME=value>", description: "environment variable; may repeat", repeats: true },
  { flags: "--memory <size>", description: "memory in MB, or with a unit as in 512mb or 1gb", minimum: 1, unit: "mb" },
  {
    flags: "--swap <size>",
    description: "swap in MB, or with a unit as in 512mb or 1gb; 0: none",
    minimum: 0,
    unit: "mb",
  },
  { flags: "--cpus <count>", description: "virtual CPUs", minimum: 1 },
  {
    flags: "-p, --port <port>",
    description: "port that the app listens on, where the proxy sends its requests",
    minimum: 1,
  },
  {
    flags: "--tcp <port>",
    description: "port of the proxy that takes TCP connections for the machine instead of HTTP requests",
    minimum: 1,
  },
  {
    flags: "--tcp-handler <name>",
    description: "what the proxy does at that port: tls, pg_tls, tls_passthrough or proxy_proto; may repeat",
    repeats: true,
  },
  {
    flags: "--autostop <what>",
    description: "what to do with the machine when it is idle",
    choices: ["suspend", "stop", "off"],
  },
  {
    flags: "--autostop-fallback <what>",
    description: "what an idle machine does that cannot be suspended; stop keeps its files",
    choices: ["stop", "off"],
  },
  { flags: "--autostart <on|off>", description: "whether a request starts the machine", choices: ["on", "off"] },
  {
    flags: "--idle-timeout <time>",
    description: "idle after this time without a request: seconds, or a unit as in 30s or 5m",
    ...IDLE_TIMEOUT_S,
    unit: "seconds",
  },
  {
    flags: "--keep-warm <time>",
    description: "how long the paused virtual machine stays in memory after a suspend, as in 30s or 5m; 0: not at all",
    ...KEEP_WARM_S,
    unit: "seconds",
  },
  {
    flags: "--min-running <count>",
    description: "machines of the app that keep running when idle",
    minimum: 0,
  },
  { flags: "--soft-limit <count>", description: "open requests at which another machine is started", minimum: 1 },
  { flags: "--hard-limit <count>", description: "open requests at which the machine takes no more", minimum: 1 },
  {
    flags: "--check <path>",
    description: "send requests only while this path answers 200 to 299, as in /health",
  },
  {
    flags: "--restart <policy>",
    description: "restart the app when it exits; no is the same as never",
    choices: ["never", "on-failure", "always", "no"],
  },
  {
    flags: "--max-retries <count>",
    description: "how many times in a row the restart policy starts the app",
    minimum: 0,
  },
  { flags: "--stop-signal <name>", description: "signal that asks the app to exit, such as SIGINT" },
  {
    flags: "--stop-timeout <time>",
    description: "how long the app may take to exit before it is killed, as in 30s",
    ...STOP_TIMEOUT_S,
    unit: "seconds",
  },
  {
    flags: "--keep-layer <on|off>",
    description: "keep what the app wrote to its file system when the machine is stopped",
    choices: ["on", "off"],
  },
  {
    flags: "-v, --volume <name:path>",
    description: "volume by name or id, and where to mount it; may repeat, replaces all existing mounts",
    repeats: true,
  },
  {
    flags: "--suspend-timeout <time>",
    description: "how long the app may prepare for a suspend, as in 5s; 0: it is not asked",
    ...SUSPEND_TIMEOUT_S,
    unit: "seconds",
  },
  ...FILE_OPTIONS,
  { flags: "--metadata <NAME=value>", description: "metadata for programs; may repeat", repeats: true },
  {
    flags: "--schedule <when>",
    description: 'when to start the machine: hourly, daily, weekly, monthly, cron as in "0 3 * * *", or off',
  },
  {
    flags: "--schedule-timezone <zone>",
    description: "time zone of the schedule, as in Europe/Berlin (default: UTC)",
  },
] as const satisfies readonly Option[];

/** The values of {@link CONFIG_OPTIONS}. */
export type ConfigOptions = OptionValues<typeof CONFIG_OPTIONS>;

/** The configuration with the changes that the options ask for. */
export function withOptions(config: MachineConfig, options: ConfigOptions): MachineConfig {
  const { image, env, memory, cpus, restart, maxRetries, stopSignal, stopTimeout, metadata, volume } = options;
  const { check, suspendTimeout, keepLayer, swap } = options;
  const services = withServiceOptions(config.services, options);
  const files = withFileOptions(config.files, options);
  return {
    ...withSchedule(config, options),
    ...(image !== undefined && { image }),
    ...merged("guest", config.guest, { memory_mb: memory, cpus }),
    ...merged("init", config.init, { swap_size_mb: swap }),
    ...merged("env", config.env, pairs("--env", env)),
    ...merged("restart", config.restart, { policy: restart === "never" ? "no" : restart, max_retries: maxRetries }),
    ...merged("stop_config", config.stop_config, { signal: stopSignal, timeout: stopTimeout }),
    ...merged("suspend_config", config.suspend_config, { timeout: suspendTimeout }),
    ...merged("checks", config.checks, {
      http: check === undefined ? undefined : { type: "http", path: checkPath(check) },
    }),
    ...merged("metadata", config.metadata, pairs("--metadata", metadata)),
    ...(keepLayer !== undefined && { keep_layer: keepLayer === "on" }),
    ...(volume !== undefined && { mounts: volume.map(mountOf) }),
    ...(services !== undefined && { services }),
    ...(files !== undefined && { files }),
  };
}

/** `off` removes the schedule with its time zone. */
function withSchedule(config: MachineConfig, { schedule, scheduleTimezone }: ConfigOptions): MachineConfig {
  if (schedule !== "off")
    return {
      ...config,
      ...(schedule !== undefined && { schedule }),
      ...(scheduleTimezone !== undefined && { schedule_timezone: scheduleTimezone }),
    };
  if (scheduleTimezone !== undefined)
    throw new UsageError("--schedule off removes the schedule. Leave out --schedule-timezone.");
  const { schedule: _when, schedule_timezone: _zone, ...unscheduled } = config;
  return unscheduled;
}

function checkPath(path: string): string {
  if (path.startsWith("/")) return path;
  throw new UsageError(`--check takes a path that begins with /, as in /${path || "health"}.`);
}

function mountOf(text: string): MountConfig {
  const at = text.indexOf(":/");
  if (at < 1) throw new UsageError(`--volume takes name:path, as in data:/data, not \`${text}\`.`);
  return { volume: text.slice(0, at), path: text.slice(at + 1) };
}

/** Whether any option asks for a change. */
export function changesConfig(options: ConfigOptions): boolean {
  return (
    options.schedule !== undefined ||
    JSON.stringify(withOptions({ image: "", services: [{ internal_port: 0 }] }, options)) !==
      JSON.stringify({ image: "", services: [{ internal_port: 0 }] })
  );
}

/** Empty when nothing changes, so that an absent part stays absent. */
function merged(key: keyof MachineConfig, before: object | undefined, changes: object): Record<string, unknown> {
  const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
  return Object.keys(given).length === 0 ? {} : { [key]: { ...before, ...given } };
}

function withServiceOptions(before: ServiceConfig[] | undefined, options: ConfigOptions): ServiceConfig[] | undefined {
  const { autostop, autostopFallback, autostart, idleTimeout, keepWarm, minRunning, softLimit, hardLimit } = options;
  const { tcp, port = tcp, tcpHandler } = options;
  if (tcpHandler !== undefined && tcp === undefined) throw new UsageError("--tcp-handler needs a port. Add --tcp.");
  const limits = {
    ...(softLimit !== undefined && { soft_limit: softLimit }),
    ...(hardLimit !== undefined && { hard_limit: hardLimit }),
  };
  const changes = {
    ...(autostop !== undefined && { autostop }),
    ...(autostopFallback !== undefined && { autostop_fallback: autostopFallback }),
    ...(autostart !== undefined && { autostart: autostart === "on" }),
    ...(idleTimeout !== undefined && { idle_timeout: idleTimeout }),
    ...(keepWarm !== undefined && { keep_warm: keepWarm }),
    ...(minRunning !== undefined && { min_machines_running: minRunning }),
  };
  const changed = (service: ServiceConfig): ServiceConfig => ({
    ...service,
    ...changes,
    ...(Object.keys(limits).length > 0 && { concurrency: { ...service.concurrency, ...limits } }),
  });
  if (port !== undefined) {
    const [first = { protocol: "http" as const, internal_port: port }, ...others] = before ?? [];
    const handlers = tcpHandler && { handlers: tcpHandler.map(tcpHandlerOf) };
    const asTcp = tcp !== undefined && { protocol: "tcp" as const, ports: [{ port: tcp, ...handlers }] };
    return [{ ...changed(first), internal_port: port, ...asTcp }, ...others];
  }
  if (Object.keys({ ...changes, ...limits }).length === 0) return before;
  if (!before?.length)
    throw new UsageError(
      "--autostop, --autostop-fallback, --autostart, --idle-timeout, --keep-warm, --min-running, --soft-limit and --hard-limit need a port. Add --port.",
    );
  return before.map(changed);
}

function tcpHandlerOf(text: string): TcpHandler {
  const found = TCP_HANDLERS.find((handler) => handler === text);
  if (found !== undefined) return found;
  throw new UsageError(`--tcp-handler takes one of ${TCP_HANDLERS.join(", ")}, not \`${text}\`.`);
}

export function pairs(flag: string, texts: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf("=");
      if (at < 1) throw new UsageError(`${flag} takes NAME=value, not \`${text}\`.`);
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}
