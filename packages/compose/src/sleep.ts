/** When a service sleeps, and what `x-hibernaut` says of that. Pure. */
import type { ServiceConfig } from "@hibernaut/client";
import type { Findings } from "./findings.ts";
import type { Ports } from "./ports.ts";
import { isMapping, type Mapping, secondsOf } from "./values.ts";

const DEFAULT_IDLE_S = 300;

/** What happens to a service that nobody uses. */
export interface SleepTerms {
  autostop: "suspend" | "stop" | "off";
  /** Whether it has `autostop` by its own word. */
  said: boolean;
  /** Seconds without a request or a byte. */
  idleTimeout: number;
  /** Whether it has `idle_timeout` by its own word. */
  saidIdle: boolean;
}

interface Own {
  http: number | false | undefined;
  /** Whether it listens nowhere, whatever its image says. Undefined if the file does not say. */
  worker: boolean | undefined;
  sleep: SleepTerms;
}

/** `x-hibernaut`: what a compose file has no words for. */
export function ownOf(definition: Mapping, path: string, findings: Findings): Own {
  const own = isMapping(definition["x-hibernaut"]) ? definition["x-hibernaut"] : {};
  const where = `${path}.x-hibernaut`;
  const { http, idle_timeout: idle, autostop, worker } = own;
  for (const key of Object.keys(own))
    if (!["http", "idle_timeout", "autostop", "worker"].includes(key))
      findings.error(`${where}.${key}`, "The key is unknown. There are http, idle_timeout, autostop and worker.");
  if (worker !== undefined && typeof worker !== "boolean") findings.error(`${where}.worker`, "Write true or false.");
  const isHttp =
    http === undefined || http === false || (Number.isInteger(http) && Number(http) >= 1 && Number(http) <= 65_535);
  if (!isHttp) findings.error(`${where}.http`, "Name the port that speaks HTTP, or false for none.");
  const seconds = idle === undefined ? undefined : secondsOf(idle);
  if (idle !== undefined && (seconds === undefined || seconds < 1))
    findings.error(`${where}.idle_timeout`, "Write a duration with its unit, as in 10s or 10m.");
  const isAutostop = autostop === undefined || autostop === "suspend" || autostop === "stop" || autostop === "off";
  if (!isAutostop) findings.error(`${where}.autostop`, "Write suspend, stop or off.");
  return {
    http: isHttp ? (http as number | false | undefined) : undefined,
    worker: typeof worker === "boolean" ? worker : undefined,
    sleep: {
      autostop: isAutostop ? (autostop ?? "suspend") : "suspend",
      said: autostop !== undefined,
      idleTimeout: Math.max(1, Math.round(seconds ?? DEFAULT_IDLE_S)),
      saidIdle: idle !== undefined,
    },
  };
}

/** Returns the services of a machine with these ports. */
export function servicesOf({ http, tcp, inside }: Ports, { autostop, idleTimeout }: SleepTerms): ServiceConfig[] {
  // What other services keep open, as pools do, is silent most of the time, and survives the sleep.
  const sleep = { autostop, idle: "quiet", idle_timeout: idleTimeout } as const;
  const byInternal = Map.groupBy(tcp, ({ internal }) => internal);
  return [
    ...(http === undefined ? [] : [{ protocol: "http" as const, internal_port: http.internal, ...sleep }]),
    ...[...byInternal].map(([internal, ports]) => ({
      protocol: "tcp" as const,
      internal_port: internal,
      ports: ports.flatMap(({ published }) => (published === undefined ? [] : [{ port: published }])),
      ...sleep,
    })),
    ...inside.map((internal) => ({ protocol: "tcp" as const, internal_port: internal, ...sleep })),
  ];
}
