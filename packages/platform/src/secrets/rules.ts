/** What may be a secret: pure rules. No message repeats a value. */
import { HibernautError } from "../domain/errors.ts";

/** `NAME=value` must fit a frame of the agent's channel (64 KiB); this leaves the name ample room. */
export const MAX_VALUE_BYTES = 48 * 1024;
/** The names of environment variables that people invent are far shorter. */
const MAX_NAME_LENGTH = 256;
/** More than any app was seen to have; the agent takes 1024 variables, with the image's and the machine's. */
export const MAX_SECRETS = 200;
/** Linux starts no program with more than 2 MiB of arguments and environment; half of it is left to the rest. */
const MAX_APP_BYTES = 1024 * 1024;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Set by the platform itself, over everything else. */
const RESERVED = /^(?:HIBERNAUT|FLY)_/;

/** Throws `invalid_argument` unless every name and value may be a secret. */
export function checkSecrets(values: Record<string, string>): void {
  if (Object.keys(values).length === 0) throw refusal("secrets", "No secret is named. Send at least one.");
  for (const [name, value] of Object.entries(values)) {
    checkName(name);
    const field = `secrets.${name}`;
    if (value.includes("\0"))
      throw refusal(field, `The value of ${name} has a zero byte, which no environment variable can hold.`);
    const bytes = Buffer.byteLength(value);
    if (bytes > MAX_VALUE_BYTES)
      throw refusal(field, `The value of ${name} has ${bytes} bytes; a secret may have ${MAX_VALUE_BYTES}.`);
  }
}

/** Throws `invalid_argument` when all of an app's secrets together, in bytes by name, would be too many or too much. */
export function checkTotal(sizes: ReadonlyMap<string, number>): void {
  if (sizes.size > MAX_SECRETS)
    throw refusal("secrets", `The app would have ${sizes.size} secrets; it may have ${MAX_SECRETS}. Unset some first.`);
  const bytes = [...sizes].reduce((sum, [name, size]) => sum + name.length + size, 0);
  if (bytes > MAX_APP_BYTES)
    throw refusal(
      "secrets",
      `The app's secrets would have ${bytes} bytes together; they may have ${MAX_APP_BYTES}. Unset some first.`,
    );
}

function checkName(name: string): void {
  const shown = name.slice(0, 100);
  if (!NAME.test(name) || name.length > MAX_NAME_LENGTH)
    throw refusal(
      "secrets",
      `\`${shown}\` is no name of an environment variable: letters, digits and _, not beginning with a digit, at most ${MAX_NAME_LENGTH}.`,
    );
  if (RESERVED.test(name))
    throw refusal("secrets", `\`${shown}\` cannot be a secret: the platform sets HIBERNAUT_* and FLY_* itself.`);
}

function refusal(field: string, message: string): HibernautError {
  return new HibernautError("invalid_argument", message, { field });
}
