/** What a machine's configuration must fulfil besides its schema. Pure. */
import { checkTimeRefusal } from "./check-times.ts";
import type { MachineConfig, MountConfig } from "./config.ts";
import { egressRefusal } from "./egress.ts";
import { HibernautError } from "./errors.ts";
import { filesRefusal } from "./guest-files.ts";
import { mountPathRefusal } from "./guest-paths.ts";
import { responseHeadersRefusal } from "./response-headers.ts";
import { scheduleRefusal } from "./schedule.ts";
import type { ServiceConfig } from "./service-config.ts";
import { signalNumber } from "./signals.ts";
import { handlersRefusal } from "./tcp-handlers.ts";

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
  const egress = egressRefusal(config.network?.egress ?? {});
  if (egress !== undefined) refuse(`network.egress.${egress.field}`, egress.message);
  const schedule = scheduleRefusal(config);
  if (schedule !== undefined) refuse(schedule.key, schedule.message);
  const signal = config.stop_config?.signal;
  if (signal !== undefined) signalNumber(signal, "config.stop_config.signal");
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
