/** Changes a text file that is its user's: it is as it was, or changed, and nothing in between. */
import { randomUUID } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";

/**
 * Writes what `change` makes of the text. Returns that, or undefined if `change` does, and throws if the file cannot be
 * written or is not UTF-8, which would not come back as it was.
 */
export function rewrite(path: string, change: (text: string) => string | undefined): string | undefined {
  // A link stays one.
  const file = realpathSync(path);
  // A file that may not be written could still be replaced.
  accessSync(file, constants.W_OK);
  const text = change(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(file)));
  if (text !== undefined) replace(file, text);
  return text;
}

/** By way of a file next to it: a disk that is full damages that one only. */
function replace(file: string, text: string): void {
  const { mode, uid, gid } = statSync(file);
  const draft = `${file}.${randomUUID()}.draft`;
  const descriptor = openSync(draft, "wx", 0o600);
  try {
    try {
      writeFileSync(descriptor, text);
      fchownSync(descriptor, uid, gid);
      fchmodSync(descriptor, mode & 0o7777);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
