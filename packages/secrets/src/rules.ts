/** Rules for names and values of secrets. Pure. No message repeats a value. */
import { HibernautError } from "@hibernaut/domain/errors";

/** `NAME=value` must fit into a frame of the agent's channel (64 KiB). This leaves ample room for the name. */
export const MAX_VALUE_BYTES = 48 * 1024;
/** Environment variables in real use have far shorter names. */
const MAX_NAME_LENGTH = 256;
/** More than any known app has. The agent takes 1,024 variables, including those of the image and the machine. */
export const MAX_SECRETS = 200;
/** Linux refuses to start a program with more than 2 MiB of arguments and environment. Half is left for the rest. */
const MAX_APP_BYTES = 1024 * 1024;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** The platform sets these itself, and they override everything else. */
const RESERVED = /^(?:HIBERNAUT|FLY)_/;

/** Throws `invalid_argument` unless every name and value is acceptable. */
export function checkSecrets(values: Record<string, string>): void {
  if (Object.keys(values).length === 0) throw refusal("secrets", "The request has no secrets. Send at least one.");
  for (const [name, value] of Object.entries(values)) {
    checkName(name);
    const field = `secrets.${name}`;
    if (value.includes("\0"))
      throw refusal(
        field,
        `The value of ${name} has a zero byte. Environment variables cannot; encode it, e.g. as base64.`,
      );
    const bytes = Buffer.byteLength(value);
    if (bytes > MAX_VALUE_BYTES)
      throw refusal(field, `The value of ${name} has ${bytes} bytes; a secret may have up to ${MAX_VALUE_BYTES}.`);
  }
}

/** Throws `invalid_argument` when an app's secrets together, given as bytes by name, would be too many or too large. */
export function checkTotal(sizes: ReadonlyMap<string, number>): void {
  if (sizes.size > MAX_SECRETS)
    throw refusal(
      "secrets",
      `The app would have ${sizes.size} secrets; it may have up to ${MAX_SECRETS}. Unset some first.`,
    );
  const bytes = [...sizes].reduce((sum, [name, size]) => sum + name.length + size, 0);
  if (bytes > MAX_APP_BYTES)
    throw refusal(
      "secrets",
      `The app's secrets would have ${bytes} bytes in total; they may have up to ${MAX_APP_BYTES}. Unset some first.`,
    );
}

function checkName(name: string): void {
  const shown = name.slice(0, 100);
  if (!NAME.test(name) || name.length > MAX_NAME_LENGTH)
    throw refusal(
      "secrets",
      `\`${shown}\` is not a valid name for a secret. Use up to ${MAX_NAME_LENGTH} letters, digits and _, not starting with a digit.`,
    );
  if (RESERVED.test(name))
    throw refusal(
      "secrets",
      `\`${shown}\` cannot be a secret: the platform sets HIBERNAUT_* and FLY_* itself. Choose another name.`,
    );
}

function refusal(field: string, message: string): HibernautError {
  return new HibernautError("invalid_argument", message, { field });
}
