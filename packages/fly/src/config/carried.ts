/** What a machine has that Fly's configuration has no word for stays when a client writes all of that again. Pure. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { ServiceConfig } from "@hibernaut/domain/service-config";

/** What is made of a client's configuration: it is gone when the client leaves it out. Everything else is carried over. */
const OF_CLIENTS = new Set<keyof MachineConfig>([
  ...(["image", "guest", "env", "init", "services", "checks", "restart", "stop_config", "mounts", "files"] as const),
  ...(["schedule", "auto_destroy", "keep_layer", "metadata", "fly_config"] as const),
]);
const OF_SERVICES = new Set<keyof ServiceConfig>([
  ...(["protocol", "internal_port", "ports", "autostop", "autostart", "min_machines_running"] as const),
  ...(["concurrency", "force_https", "http_options"] as const),
]);

/** The new configuration, with what the machine has besides. A service is the one with the same port and, if there are two, the same protocol. */
export function carriedOver(now: MachineConfig, next: MachineConfig): MachineConfig {
  const { services } = next;
  const { schedule_timezone: zone, ...carried } = without(now, OF_CLIENTS);
  return {
    ...carried,
    // It means nothing without a schedule.
    ...(zone !== undefined && next.schedule !== undefined && { schedule_timezone: zone }),
    ...next,
    ...(services && {
      services: services.map((service) => {
        const same = now.services?.filter(({ internal_port: port }) => port === service.internal_port) ?? [];
        const before = same.find(({ protocol }) => protocol === service.protocol) ?? same[0];
        return before === undefined ? service : { ...without(before, OF_SERVICES), ...service };
      }),
    }),
  };
}

function without<T extends object>(of: T, keys: ReadonlySet<keyof T>): Partial<T> {
  return Object.fromEntries(Object.entries(of).filter(([key]) => !keys.has(key as keyof T))) as Partial<T>;
}

/** There, any request may choose its machine by a header. Here, a service says so, unless it has been told otherwise. */
export function choosable(config: MachineConfig): MachineConfig {
  const { services } = config;
  if (services === undefined) return config;
  return {
    ...config,
    services: services.map((service) =>
      service.protocol === "http" ? { machine_hostnames: true, ...service } : service,
    ),
  };
}
