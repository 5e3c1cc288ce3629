/** Turns a configuration of the platform into one for Fly's clients. Pure. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { guestSize } from "@hibernaut/domain/config";
import type { CheckConfig, ServiceConfig } from "@hibernaut/domain/service-config";

/** How the CPUs of all machines are called: they share those of the host. */
const CPU_KIND = "shared";

/** Any configuration of Fly's, with keys that are not known here. */
export type FlyWire = Record<string, unknown>;

/** `init` and `guest` are never absent: clients read them without a look. */
export function toFly(config: MachineConfig): FlyWire {
  const { cpus, memoryMb } = guestSize(config);
  const { services, checks, stop_config: stop, mounts, keep_layer: keeps } = config;
  return {
    image: config.image,
    guest: { cpu_kind: CPU_KIND, cpus, memory_mb: memoryMb },
    init: { ...config.init },
    ...(config.env && { env: config.env }),
    ...(services && { services: services.map(serviceWire) }),
    ...(checks && {
      checks: Object.fromEntries(Object.entries(checks).map(([name, check]) => [name, checkWire(check)])),
    }),
    ...(config.restart && { restart: config.restart }),
    ...(stop && {
      stop_config: { ...stop, ...(stop.timeout !== undefined && { timeout: `${stop.timeout}s` }) },
    }),
    ...(mounts && { mounts: mounts.map(({ volume, name, path }) => ({ volume, name, path })) }),
    ...(config.files && { files: config.files }),
    ...(config.schedule !== undefined && { schedule: config.schedule }),
    ...(config.metadata && { metadata: config.metadata }),
    ...(keeps === true && { rootfs: { persist: "restart" } }),
    ...("auto_destroy" in config && { auto_destroy: config.auto_destroy }),
  };
}

function serviceWire({ protocol, force_https, http_options, ports = [], ...service }: ServiceConfig): FlyWire {
  const { internal_port, autostop, autostart, min_machines_running, idle_timeout, concurrency } = service;
  const http = http_options === undefined ? {} : { http_options };
  const forces = force_https === true ? { force_https } : {};
  return {
    protocol: "tcp",
    internal_port,
    ...(autostop !== undefined && { autostop }),
    ...(autostart !== undefined && { autostart }),
    ...(min_machines_running !== undefined && { min_machines_running }),
    ...(idle_timeout !== undefined && { idle_timeout }),
    ...(concurrency !== undefined && { concurrency }),
    ports:
      protocol === "http"
        ? [
            { port: 80, handlers: ["http"], ...forces, ...http },
            { port: 443, handlers: ["tls", "http"], ...http },
          ]
        : ports,
  };
}

/** Clients read durations of checks with a unit. */
function checkWire({ interval, timeout, grace_period, ...check }: CheckConfig): FlyWire {
  const times = Object.entries({ interval, timeout, grace_period }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, typeof value === "number" ? `${value}s` : value] as const],
  );
  return { ...check, ...Object.fromEntries(times) };
}
