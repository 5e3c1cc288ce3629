/** What a service's configuration means to the proxy: every default filled in, in the proxy's own units. */
import type { MachineConfig, ServiceConfig } from "../domain/config.ts";

/** As in Fly's: at this load a machine still serves, and another is started beside it. */
const SOFT_LIMIT = 20;
/** Long enough that someone who reads a page finds the machine awake, short enough that a night costs nothing. */
const IDLE_TIMEOUT_S = 300;

export interface Policy {
  /** The port in the guest. */
  port: number;
  /** What becomes of a machine that nobody needs. */
  autostop: "suspend" | "stop" | "off";
  /** Whether a request may start a machine. */
  autostart: boolean;
  /** Of the app's machines so many are never put to sleep. */
  minRunning: number;
  idleTimeoutMs: number;
  /** What load counts: open requests, or client connections that have one. */
  unit: "requests" | "connections";
  softLimit: number;
  /** Infinity when none is set. */
  hardLimit: number;
}

/** The policy of the service that takes HTTP requests: the first that says so, else the first. Undefined without services. */
export function policyOf(config: MachineConfig): Policy | undefined {
  const services = config.services ?? [];
  const service = services.find(({ protocol }) => protocol === "http") ?? services[0];
  return service && servicePolicy(service);
}

function servicePolicy(service: ServiceConfig): Policy {
  const { concurrency = {} } = service;
  const hardLimit = concurrency.hard_limit ?? Number.POSITIVE_INFINITY;
  return {
    port: service.internal_port,
    autostop: service.autostop ?? "off",
    autostart: service.autostart ?? true,
    minRunning: service.min_machines_running ?? 0,
    idleTimeoutMs: (service.idle_timeout ?? IDLE_TIMEOUT_S) * 1000,
    unit: concurrency.type ?? "requests",
    softLimit: concurrency.soft_limit ?? Math.min(SOFT_LIMIT, hardLimit),
    hardLimit,
  };
}
