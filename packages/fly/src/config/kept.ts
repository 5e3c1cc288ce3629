/**
 * Clients of Fly change a machine by reading its configuration and sending it back with a change, so that a key which is
 * not returned is lost. What they sent is kept as it was, next to what the platform made of it. Pure.
 */
import { isDeepStrictEqual } from "node:util";
import type { MachineConfig } from "@hibernaut/domain/config";
import { Refusal } from "../failure.ts";
import type { FlyConfig } from "./schema.ts";
import { type FlyWire, toFly } from "./to-fly.ts";
import { toPlatform } from "./to-platform.ts";

/** How deep a configuration may be: theirs are 7. Beyond some thousand, JSON cannot be written. */
const MOST_DEPTH = 32;

/** What clients sent, without what is null: that is how Go's clients say that something is not set. Throws a {@link Refusal} if it is too deep. */
export function withoutNulls(value: unknown, depth = 0): unknown {
  if (depth > MOST_DEPTH) throw new Refusal(400, "invalid_argument: The body is nested too deeply.");
  if (Array.isArray(value)) return value.filter((item) => item !== null).map((item) => withoutNulls(item, depth + 1));
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([, item]) => item !== null);
  return Object.fromEntries(kept.map(([key, item]) => [key, withoutNulls(item, depth + 1)]));
}

/** What the platform itself keeps there is not for clients to send. */
export function withoutKept(sent: FlyConfig): FlyConfig {
  const { fly_config: _, ...others } = sent as FlyConfig & { fly_config?: unknown };
  return others;
}

/** The configuration for the platform, with what the client sent. `sent` is as its schema says. */
export function keeping(sent: FlyConfig): MachineConfig {
  return { ...toPlatform(sent), fly_config: JSON.stringify(sent) };
}

/**
 * What a client is shown: what it sent. Where the machine was changed otherwise meanwhile, that part is what the machine
 * has now.
 */
export function shown({ fly_config: text, ...config }: MachineConfig): FlyWire {
  const now = toFly(config);
  if (text === undefined) return now;
  const sent = JSON.parse(text) as FlyWire;
  const then = thenOf(sent, config);
  const changed = Object.keys({ ...now, ...then }).filter((key) => !isDeepStrictEqual(now[key], then[key]));
  const merged: FlyWire = { guest: now["guest"], init: now["init"], ...sent };
  for (const key of changed) {
    if (now[key] === undefined) delete merged[key];
    else merged[key] = now[key];
  }
  return { ...merged, ...(now["mounts"] !== undefined && { mounts: mountsOf(sent, now) }) };
}

/** What the platform made of it. Nothing, if it would be refused now: then, what the machine has now is right. */
function thenOf(sent: FlyConfig, { mounts }: MachineConfig): FlyWire {
  try {
    // The platform answers with ids of volumes where it was told names.
    return toFly({ ...toPlatform(sent), ...(mounts && { mounts }) });
  } catch (error) {
    if (error instanceof Refusal) return {};
    throw error;
  }
}

/** Each mount as it was sent, with the volume that it led to. */
function mountsOf(sent: FlyWire, now: FlyWire): unknown {
  const before = (sent["mounts"] ?? []) as FlyWire[];
  const mounts = now["mounts"] as FlyWire[];
  return mounts.map((mount) => ({ ...before.find(({ path }) => path === mount["path"]), ...mount }));
}
