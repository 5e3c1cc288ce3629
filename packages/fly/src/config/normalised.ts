/** Writes in one way what clients of different age write in several. Pure. */
import { durationMs } from "./duration.ts";
import type { FlyCheck, FlyConfig } from "./schema.ts";

/** `autostop` becomes a word, and a duration a text: all clients read those. */
export function normalised(config: FlyConfig): FlyConfig {
  const { services, checks, stop_config: stop } = config;
  return {
    ...config,
    ...(services && {
      services: services.map((service) => ({
        ...service,
        ...(typeof service.autostop === "boolean" && { autostop: service.autostop ? "stop" : "off" }),
        ...(service.checks && { checks: service.checks.map(checkOf) }),
      })),
    }),
    ...(checks && {
      checks: Object.fromEntries(Object.entries(checks).map(([name, check]) => [name, checkOf(check)])),
    }),
    ...(stop && { stop_config: { ...stop, ...(stop.timeout !== undefined && { timeout: textOf(stop.timeout) }) } }),
  };
}

function checkOf(check: FlyCheck): FlyCheck {
  const times = (["interval", "timeout", "grace_period"] as const).flatMap((name) => {
    const value = check[name];
    return value === undefined ? [] : [[name, textOf(value)] as const];
  });
  return { ...check, ...Object.fromEntries(times) };
}

function textOf(value: number | string): string {
  if (typeof value === "string") return value;
  const ms = durationMs(value, "");
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
