/**
 * Clients of Fly change a machine by reading its configuration and sending it back with a change, so that a key which is
 * not returned is lost. What they sent is kept, next to what the platform made of it. Pure.
 */
import { isDeepStrictEqual } from "node:util";
import type { MachineConfig } from "@hibernaut/domain/config";
import { given } from "@hibernaut/lib/given";
import { Compile } from "typebox/compile";
import { Refusal } from "../failure.ts";
import { isTooDeep } from "./nulls.ts";
import { type FlyCheck, FlyConfig } from "./schema.ts";
import { withHeaders, withoutHeaders, withoutSecrets } from "./secrets.ts";
import { type FlyWire, toFly } from "./to-fly.ts";
import { toPlatform } from "./to-platform.ts";

const isFlyConfig = Compile(FlyConfig);

/** What the platform itself keeps there is not for clients to send. */
export function withoutKept(sent: FlyConfig): FlyConfig {
  const { fly_config: _, ...others } = sent as FlyConfig & { fly_config?: unknown };
  return others;
}

/**
 * The configuration for the platform, with what the client sent, except for what may be secret: the machine has that itself, and
 * nobody would look for it here once it was taken out there.
 */
export function keeping(sent: FlyConfig): MachineConfig {
  return { ...toPlatform(sent), fly_config: JSON.stringify(withoutSecrets(sent)) };
}

/**
 * What a client is shown: what it sent. Where the machine was changed otherwise meanwhile, that part is what the machine
 * has now.
 */
export function shown(config: MachineConfig): FlyWire {
  const before = known.get(config);
  if (before !== undefined) return before;
  const wire = wireOf(config);
  known.set(config, wire);
  return wire;
}

/** By the configuration in a machine's record, which is replaced and never changed: lists are asked for over and over. */
const known = new WeakMap<MachineConfig, FlyWire>();

function wireOf({ fly_config: text, ...config }: MachineConfig): FlyWire {
  const now = toFly(config);
  const sent = text === undefined ? undefined : sentIn(text);
  if (sent === undefined) return now;
  const made = madeOf(sent);
  const merged: FlyWire = { guest: now["guest"], init: now["init"], ...sent };
  for (const key of Object.keys({ ...now, ...made }))
    if (!isDeepStrictEqual(now[key], made[key])) merged[key] = now[key];
  merged["env"] = now["env"];
  for (const [key, by] of MERGED) merged[key] = now[key] && merge(sent[key], now[key], by);
  return given({ ...merged, ...servicesOf(sent, made, now) });
}

/** Checks of services are checks of the machine, too: once one was changed, all are shown there. */
function servicesOf(sent: FlyConfig, made: FlyWire, now: FlyWire): FlyWire {
  const { services, checks = {} } = now as { services?: unknown; checks?: Readonly<Record<string, FlyCheck>> };
  const isChanged = !isDeepStrictEqual(services, made["services"]);
  if (isChanged) return { services, checks: now["checks"] };
  if (isDeepStrictEqual(withoutHeaders(checks), made["checks"] ?? {})) return withHeaders(sent, checks);
  return { services: sent.services?.map(({ checks: _, ...service }) => service), checks: now["checks"] };
}

/**
 * Lists whose items are what the machine has, with what was sent of each besides: the platform answers with ids of volumes where it was told
 * names, and no content of a file is kept. And what tells the items apart.
 */
const MERGED = [
  ["mounts", "path"],
  ["files", "guest_path"],
] as const;

/** Other clients of the platform may have written anything there. */
function sentIn(text: string): (FlyConfig & FlyWire) | undefined {
  try {
    const sent: unknown = JSON.parse(text);
    return !isTooDeep(sent) && isFlyConfig.Check(sent) ? sent : undefined;
  } catch {
    return undefined;
  }
}

/** What the platform made of it. Nothing, if it would be refused now: then, what the machine has now is right. */
function madeOf(sent: FlyConfig): FlyWire {
  try {
    return toFly(toPlatform(sent));
  } catch (error) {
    if (error instanceof Refusal) return {};
    throw error;
  }
}

function merge(sent: unknown, now: unknown, by: string): unknown {
  const before = (sent ?? []) as FlyWire[];
  return (now as FlyWire[]).map((item) => ({ ...before.find((one) => one[by] === item[by]), ...item }));
}
