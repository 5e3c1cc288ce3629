/** What a service's configuration means to the proxy: with all defaults filled in, in the proxy's units. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { DEFAULT_IDLE_TIMEOUT_S, DEFAULT_SOFT_LIMIT } from "@hibernaut/domain/limits";
import type { ResponseHeaders } from "@hibernaut/domain/response-headers";
import type { ServiceConfig } from "@hibernaut/domain/service-config";
import type { OwnHeader } from "./contract.ts";

export interface ServicePolicy {
  /** The port in the guest. */
  port: number;
  /** What happens to a machine that is idle. */
  autostop: "suspend" | "stop" | "off";
  /** What happens to it if it should be suspended and cannot be. */
  autostopFallback: "stop" | "off";
  /** Whether a request may start a machine. */
  autostart: boolean;
  /** At least this many of the app's machines keep running; 0 for a pinned machine. */
  minRunning: number;
  idleTimeoutMs: number;
  /** How long a request waits for the machine, if the service says so. */
  holdTimeoutMs: number | undefined;
  /** Whether an upgraded or TCP connection that is open, but silent, lets the machine sleep. */
  quiet: boolean;
  /** What counts as load: open requests, or client connections that have one. */
  unit: "requests" | "connections";
  softLimit: number;
  /** Infinity if none is set. */
  hardLimit: number;
  /** Whether the service is for HTTP requests, and not only taken for one because the machine has no other. */
  web: boolean;
  /** Whether the machine has work of its own, and is judged without the app's other machines. */
  pinned: boolean;
  /** Whether nothing connects to the machine: it waits for what comes over connections of its own. */
  worker: boolean;
  /** The ports of all services at which requests may choose this machine. */
  ownPorts: readonly number[];
  /** Other apps that may send their requests on to this machine. */
  replayFrom: readonly string[];
  /** Whether requests over plain HTTP are redirected. */
  forceHttps: boolean;
  /** Whether browsers are shown a page while a machine cold starts. */
  wakePage: boolean;
  /** Whether the app speaks HTTP/2 without TLS, and gets its requests over it. */
  h2Backend: boolean;
  /** Headers that replace those of the app in its responses. Undefined if there are none. */
  ownHeaders: readonly OwnHeader[] | undefined;
}

/**
 * Returns the policy of the service that takes HTTP requests: the first with `protocol: http`, otherwise the first. That of a
 * worker without services. Undefined if nothing puts the machine to sleep or wakes it.
 */
export function policyOf(config: MachineConfig): ServicePolicy | undefined {
  const services = config.services ?? [];
  const service = services.find(({ protocol }) => protocol === "http") ?? services[0];
  const ownPorts = services.filter((one) => one.machine_hostnames === true).map((one) => one.internal_port);
  if (service !== undefined) return servicePolicy(service, ownPorts);
  return config.worker_idle_timeout === undefined ? undefined : workerPolicy(config.worker_idle_timeout);
}

function workerPolicy(idleTimeoutS: number): ServicePolicy {
  const terms = {
    internal_port: 0,
    autostop: "suspend",
    autostop_fallback: "off",
    idle_timeout: idleTimeoutS,
  } as const;
  const concurrency = { type: "connections" } as const;
  return { ...servicePolicy({ ...terms, idle: "quiet", placement: "pinned", concurrency }, []), worker: true };
}

function servicePolicy(service: ServiceConfig, ownPorts: number[]): ServicePolicy {
  const { concurrency = {} } = service;
  const hardLimit = concurrency.hard_limit ?? Number.POSITIVE_INFINITY;
  const pinned = service.placement === "pinned";
  return {
    port: service.internal_port,
    autostop: service.autostop ?? "off",
    autostopFallback: service.autostop_fallback ?? "stop",
    autostart: service.autostart ?? true,
    minRunning: pinned ? 0 : (service.min_machines_running ?? 0),
    idleTimeoutMs: (service.idle_timeout ?? DEFAULT_IDLE_TIMEOUT_S) * 1000,
    holdTimeoutMs: service.hold_timeout && service.hold_timeout * 1000,
    quiet: service.idle === "quiet",
    unit: concurrency.type ?? "requests",
    softLimit: concurrency.soft_limit ?? Math.min(DEFAULT_SOFT_LIMIT, hardLimit),
    hardLimit,
    web: service.protocol === "http",
    pinned,
    worker: false,
    ownPorts,
    replayFrom: service.replay_from ?? [],
    forceHttps: service.force_https ?? false,
    wakePage: service.wake_page ?? false,
    h2Backend: service.http_options?.h2_backend ?? false,
    ownHeaders: ownHeaders(service.http_options?.response?.headers ?? {}),
  };
}

function ownHeaders(headers: ResponseHeaders): OwnHeader[] | undefined {
  const all = Object.entries(headers).map(([name, value]) => {
    const key = name.toLowerCase();
    return { key, fields: (value === false ? [] : [value].flat()).map((one) => ({ name, key, value: one })) };
  });
  return all.length === 0 ? undefined : all;
}
