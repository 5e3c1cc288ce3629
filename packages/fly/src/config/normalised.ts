/** Writes in one way what clients of different age write in several. Pure. */
import { given } from "@hibernaut/lib/given";
import { durationMs } from "./duration.ts";
import type { FlyCheck, FlyConfig } from "./schema.ts";

/**
 * `autostop` becomes a word, and a duration a text: all clients read those. What can be said in two places is said in one, so that a
 * change of it finds no other that says what was before.
 */
export function normalised(sent: FlyConfig): FlyConfig {
  const config = inOnePlace(sent);
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

function inOnePlace({ processes, disable_machine_autostart: never, guest, ...config }: FlyConfig): FlyConfig {
  const [only, ...others] = processes ?? [];
  const { exec, entrypoint, cmd, env, ...process } = only ?? {};
  const { persist_rootfs: persist, ...size } = guest ?? {};
  const rest = [...(Object.keys(process).length > 0 ? [process] : []), ...others];
  const init = given({ exec, entrypoint, cmd });
  return {
    ...config,
    ...(guest && { guest: size }),
    ...(persist !== undefined && { rootfs: { persist, ...config.rootfs } }),
    ...(rest.length > 0 && { processes: others.length > 0 ? processes : rest }),
    ...(Object.keys(init).length > 0 && { init: { ...config.init, ...init } }),
    ...(env && { env: { ...config.env, ...env } }),
    ...(never === true &&
      config.services && { services: config.services.map((service) => ({ ...service, autostart: false })) }),
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
