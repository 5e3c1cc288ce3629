/** The file with the key of all secrets. It is made once and never replaced: every secret would be lost with it. */
import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { isAbsent, isPassing } from "@hibernaut/lib/absence";
import { flushSync } from "@hibernaut/lib/durable";
import { wipe } from "@hibernaut/lib/wipe";
import { KEY_BYTES } from "./cipher.ts";

/** What to do about a missing or wrong key, for every error about one. */
export const REPAIR =
  "Put the key back from a backup. If it is lost, unset the secrets with `hibernaut secrets unset` and set them again.";

/**
 * Reads the key, which the caller wipes. Undefined when the file does not exist. Throws `failed_precondition` when it is not a
 * valid key, and `unavailable` when the host cannot read it at the moment.
 */
export function readKey(file: string): Buffer | undefined {
  let key: Buffer;
  try {
    key = readFileSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (isAbsent(error)) return undefined;
    const what = `The key of the secrets, ${file}, cannot be read: ${code}.`;
    throw isPassing(error)
      ? new HibernautError("unavailable", `${what} Try again when the host is less busy.`, {}, { cause: error })
      : new HibernautError("failed_precondition", `${what} Let the platform's user read it.`, {}, { cause: error });
  }
  if (key.length === KEY_BYTES) return key;
  wipe(key);
  const what = `The key of the secrets, ${file}, is not valid: it has ${key.length} bytes instead of ${KEY_BYTES}.`;
  throw new HibernautError("failed_precondition", `${what} ${REPAIR}`);
}

/**
 * Makes the key, readable by its owner alone. It is durable before the first secret is encrypted with it. The caller wipes
 * what is returned.
 */
export function makeKey(file: string): Buffer {
  const key = randomBytes(KEY_BYTES);
  const temporary = `${file}.tmp`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, key, { flag: "wx", mode: 0o600, flush: true });
  try {
    // Unlike a rename, a link never replaces an existing key.
    linkSync(temporary, file);
  } finally {
    rmSync(temporary, { force: true });
  }
  flushSync(dirname(file));
  return key;
}
