/** The file with the key of all secrets. It is made once and never replaced: with it, everything it encrypted would be lost. */
import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { HibernautError } from "../domain/errors.ts";
import { flushSync } from "../lib/durable.ts";
import { KEY_BYTES } from "./cipher.ts";

/** What to do about a key that is not the right one; the same words wherever that is noticed. */
export const REPAIR =
  "Put the key back from a backup. If it is lost, unset the secrets with `hibernaut secrets unset` and set them again.";

/** The key; undefined when there is no file. Throws `failed_precondition` when the file is no key. */
export function readKey(file: string): Buffer | undefined {
  let key: Buffer;
  try {
    key = readFileSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new HibernautError(
      "failed_precondition",
      `The key of the secrets, ${file}, cannot be read: ${code}.`,
      {},
      { cause: error },
    );
  }
  if (key.length === KEY_BYTES) return key;
  const what = `The key of the secrets, ${file}, has ${key.length} bytes instead of ${KEY_BYTES}: it is none.`;
  throw new HibernautError("failed_precondition", `${what} ${REPAIR}`);
}

/** Makes the key. It is durable before the first secret is encrypted with it, and never readable by others. */
export function makeKey(file: string): Buffer {
  const key = randomBytes(KEY_BYTES);
  const temporary = `${file}.tmp`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, key, { flag: "wx", mode: 0o600, flush: true });
  try {
    // Unlike a rename, a link never replaces a key that is there.
    linkSync(temporary, file);
  } finally {
    rmSync(temporary, { force: true });
  }
  flushSync(dirname(file));
  return key;
}
