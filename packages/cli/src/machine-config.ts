/** Turns options of `machine create`, `run` and `update` into a configuration. */
import type { MachineConfig, ServiceConfig } from "@hibernaut/client";
import { MACHINE_FIELDS, SERVICE_FIELDS } from "@hibernaut/domain/fields";
import { TCP_HANDLERS, type TcpHandler } from "@hibernaut/domain/tcp-handlers";
import { given } from "@hibernaut/lib/given";
import type { Option, OptionValues } from "./command.ts";
import { UsageError } from "./failure.ts";
import { type FieldOptions, fieldOptions, givenFields, withFieldOptions } from "./field-options.ts";
import { FILE_OPTIONS, withFileOptions } from "./machine-files.ts";

/** The options that describe a configuration. */
export const CONFIG_OPTIONS = [
  { flags: "--image <reference>", description: "image to run, such as oci:/srv/app:latest" },
  { flags: "-e, --env <NAME=value>", description: "environment variable; may repeat", repeats: true },
  ...fieldOptions(MACHINE_FIELDS),
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
  ...fieldOptions(SERVICE_FIELDS),
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
    flags: "-v, --volume <name:path>",
    description: "volume by name or id, and where to mount it; may repeat, replaces all existing mounts",
    repeats: true,
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
export type ConfigOptions = OptionValues<typeof CONFIG_OPTIONS> &
  FieldOptions<typeof MACHINE_FIELDS> &
  FieldOptions<typeof SERVICE_FIELDS>;

/** The configuration with the changes that the options ask for. */
export function withOptions(config: MachineConfig, options: ConfigOptions): MachineConfig {
  const { image, env, restart, metadata, volume, check } = options;
  const services = withServiceOptions(config.services, options);
  const files = withFileOptions(config.files, options);
  const before = withFieldOptions(config, MACHINE_FIELDS, options);
  return {
    ...withSchedule(before, options),
    ...merged("env", before.env, pairs("--env", env)),
    ...merged("restart", before.restart, { policy: restart === "never" ? "no" : restart }),
    ...merged("checks", before.checks, {
      http: check === undefined ? undefined : { type: "http", path: checkPath(check) },
    }),
    ...merged("metadata", before.metadata, pairs("--metadata", metadata)),
    ...(volume !== undefined && { mounts: volume.map(mountOf) }),
    ...given({ image, services, files }),
  };
}

/** `off` removes the schedule with its time zone. */
function withSchedule(config: MachineConfig, { schedule, scheduleTimezone }: ConfigOptions): MachineConfig {
  if (schedule !== "off") return { ...config, ...given({ schedule, schedule_timezone: scheduleTimezone }) };
  if (scheduleTimezone !== undefined)
    throw new UsageError("--schedule off removes the schedule. Leave out --schedule-timezone.");
  const { schedule: _when, schedule_timezone: _zone, ...unscheduled } = config;
  return unscheduled;
}

function checkPath(path: string): string {
  if (path.startsWith("/")) return path;
  throw new UsageError(`--check takes a path that begins with /, as in /${path || "health"}.`);
}

/** Returns what `--volume` says. Throws a {@link UsageError} for anything but `name:path`. */
export function mountOf(text: string): { volume: string; path: string } {
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
  const made = given(changes);
  return Object.keys(made).length === 0 ? {} : { [key]: { ...before, ...made } };
}

function withServiceOptions(before: ServiceConfig[] | undefined, options: ConfigOptions): ServiceConfig[] | undefined {
  const { tcp, port = tcp, tcpHandler } = options;
  if (tcpHandler !== undefined && tcp === undefined) throw new UsageError("--tcp-handler needs a port. Add --tcp.");
  const changed = (service: ServiceConfig) => withFieldOptions(service, SERVICE_FIELDS, options);
  if (port !== undefined) {
    const [first = { protocol: "http" as const, internal_port: port }, ...others] = before ?? [];
    const handlers = tcpHandler && { handlers: tcpHandler.map(tcpHandlerOf) };
    const asTcp = tcp !== undefined && { protocol: "tcp" as const, ports: [{ port: tcp, ...handlers }] };
    return [{ ...changed(first), internal_port: port, ...asTcp }, ...others];
  }
  const [option] = givenFields(SERVICE_FIELDS, options);
  if (option !== undefined && !before?.length) throw new UsageError(`${option} needs a port. Add --port.`);
  return before?.map(changed);
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
