/** Services and checks of Fly's configuration as those of the platform. Pure. */
import type { CheckConfig, ServiceConfig, TcpPortConfig } from "@hibernaut/domain/service-config";
import { given } from "@hibernaut/lib/given";
import { Refusal } from "../failure.ts";
import { durationText } from "./duration.ts";
import type { FlyCheck, FlyPort, FlyService } from "./schema.ts";

/** What a port that speaks HTTP has among its handlers. The proxy serves all apps at its own ports, by their hostnames. */
const HTTP = "http";

/** Throws a {@link Refusal} for what the proxy does not do. */
export function serviceOf(service: FlyService, at: number): ServiceConfig {
  const { internal_port, autostop, autostart, min_machines_running, idle_timeout, ports = [], concurrency } = service;
  if ((service.protocol ?? "tcp") !== "tcp")
    throw new Refusal(501, `services[${at}].protocol is ${service.protocol}: the proxy serves TCP and HTTP only.`);
  const isHttp = ports.some(({ handlers = [] }) => handlers.includes(HTTP));
  return {
    protocol: isHttp ? "http" : "tcp",
    internal_port,
    ...given({ autostart, min_machines_running, idle_timeout }),
    ...(autostop !== undefined && { autostop: autostopOf(autostop, at) }),
    ...(concurrency !== undefined && { concurrency: given(concurrency) as ServiceConfig["concurrency"] }),
    ...(isHttp ? httpOf(ports) : ports.length > 0 && { ports: ports.map((port) => tcpPortOf(port, at)) }),
  } as ServiceConfig;
}

/** Checks of services are checks of the machine, with the names that Fly gives them. */
export function serviceChecks(services: readonly FlyService[]): Record<string, CheckConfig> {
  const named = services.flatMap(({ internal_port, checks = [] }, of) =>
    checks.map((check, at) => {
      const name = serviceCheckName(check, at, internal_port);
      return [name, checkOf({ port: internal_port, ...check }, `services[${of}].checks[${at}]`)] as const;
    }),
  );
  return Object.fromEntries(named);
}

/** What Fly calls the check of a service, and so does the platform. */
export function serviceCheckName({ type = "tcp" }: Pick<FlyCheck, "type">, at: number, port: number): string {
  return `servicecheck-${String(at).padStart(2, "0")}-${type}-${port}`;
}

/** Throws a {@link Refusal} for a check that the platform does not have. */
export function checkOf(check: FlyCheck, field: string): CheckConfig {
  const { type = "tcp", port, method, path, headers } = check;
  if (check.protocol === "https")
    throw new Refusal(501, `${field}.protocol is https: checks ask a machine over plain HTTP.`);
  const time = (name: "interval" | "timeout" | "grace_period") => {
    const value = check[name];
    return value === undefined ? undefined : durationText(value, `${field}.${name}`);
  };
  const times = { interval: time("interval"), timeout: time("timeout"), grace_period: time("grace_period") };
  const request =
    type === HTTP ? { method, path, headers: headers?.map(({ name, values = [] }) => ({ name, values })) } : {};
  return given({ type, port, ...times, ...request }) as unknown as CheckConfig;
}

/** Fly's clients of different age say true and false, too. */
function autostopOf(value: boolean | string, at: number): "off" | "stop" | "suspend" {
  if (typeof value === "boolean") return value ? "stop" : "off";
  if (value === "off" || value === "stop" || value === "suspend") return value;
  throw new Refusal(400, `invalid_argument: services[${at}].autostop must be off, stop or suspend.`);
}

function httpOf(ports: readonly FlyPort[]): Partial<ServiceConfig> {
  const options = ports.find(({ http_options }) => http_options !== undefined)?.http_options;
  const headers = options?.response?.headers as Record<string, string> | undefined;
  const http = {
    ...(options?.h2_backend !== undefined && { h2_backend: options.h2_backend }),
    ...(headers !== undefined && { response: { headers } }),
  };
  return {
    ...(ports.some(({ force_https }) => force_https === true) && { force_https: true }),
    ...(Object.keys(http).length > 0 && { http_options: http }),
  };
}

function tcpPortOf(
  { port, start_port, end_port, handlers = [], proxy_proto_options }: FlyPort,
  at: number,
): TcpPortConfig {
  const only = port ?? (start_port === end_port ? start_port : undefined);
  if (only === undefined)
    throw new Refusal(501, `services[${at}].ports has a range of ports: name each port that the proxy should open.`);
  return {
    port: only,
    ...(handlers.length > 0 && { handlers: handlers as TcpPortConfig["handlers"] }),
    ...(proxy_proto_options?.version !== undefined && {
      proxy_proto_options: { version: proxy_proto_options.version },
    }),
  } as TcpPortConfig;
}
