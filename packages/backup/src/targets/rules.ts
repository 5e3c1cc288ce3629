/** What a target may be. */
import { randomBytes } from "node:crypto";
import { cronRefusal } from "@hibernaut/domain/cron";
import { HibernautError } from "@hibernaut/domain/errors";
import type { TargetRecord } from "./target-file.ts";

/** Each is one more place to keep, with a metric and a line in lists. */
const MAX_TARGETS = 16;
/** Part of metrics, events and names of sealed values. */
const NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;
/** 256 bits, in letters that can be copied from a terminal. */
const KEY_BYTES = 32;
/** A key that someone else chose must not be a guess. Characters. */
const LEAST_KEY_LENGTH = 16;
const MOST_KEY_LENGTH = 1000;

/** Returns a new key for a repository. */
export function newKey(): string {
  return randomBytes(KEY_BYTES).toString("base64url");
}

/** Returns a key that was given, in one line. Throws `invalid_argument` for one that cannot be one. */
export function givenKey(text: string): string {
  const key = text.trim();
  if (key.length >= LEAST_KEY_LENGTH && key.length <= MOST_KEY_LENGTH && !/\p{Cc}/u.test(key)) return key;
  const message = `The key has to be one line of ${LEAST_KEY_LENGTH} to ${MOST_KEY_LENGTH} characters.`;
  throw new HibernautError("invalid_argument", message, { field: "key" });
}

/** Throws `invalid_argument` unless a target may have the name. */
export function requireName(name: string): void {
  if (NAME.test(name)) return;
  const message = `"${name.slice(0, 40)}" is not a valid name for a target. Use up to 32 of a-z, 0-9 and -, and begin with a letter or a digit.`;
  throw new HibernautError("invalid_argument", message, { field: "name" });
}

/** Throws `invalid_argument` unless backups can be made at such times. */
export function requireSchedule(schedule: string | null, field = "schedule"): void {
  const refusal = schedule === null ? undefined : cronRefusal(schedule);
  if (refusal !== undefined) throw new HibernautError("invalid_argument", refusal, { field });
}

/** Throws when there is such a target, or when there are too many. */
export function refuseTaken(targets: readonly TargetRecord[], { name, url }: Pick<TargetRecord, "name" | "url">): void {
  const taken = targets.find((target) => target.name === name || target.url === url);
  if (taken !== undefined)
    throw new HibernautError("already_exists", `The target ${taken.name} exists already, at ${taken.url}.`);
  if (targets.length >= MAX_TARGETS)
    throw new HibernautError("resource_exhausted", `There are ${MAX_TARGETS} targets, and no more are possible.`);
}
