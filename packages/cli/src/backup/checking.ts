/**
 * Whether a backup is whole: its last entry is a checksum of everything before it.
 *
 *   entries | backup.sha256: 512 bytes of header, 512 of content | 1024 zero bytes
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { addAbortSignal, type Readable } from "node:stream";
import { CliError, UsageError } from "../failure.ts";

const CHECKSUM_FILE = "backup.sha256";
/** What follows the entries: the header and content of the last entry, and the end of the archive. */
const END_BYTES = 2048;
const BLOCK = 512;

/** A backup that is whole. */
export interface WholeBackup {
  bytes: number;
  sha256: string;
}

/** Looks at a backup as it passes by. */
export class BackupCheck {
  readonly #hash = createHash("sha256");
  #summed = 0;
  #end: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    const all = this.#end.length === 0 ? chunk : Buffer.concat([this.#end, chunk]);
    const sum = all.subarray(0, Math.max(0, all.length - END_BYTES));
    this.#hash.update(sum);
    this.#summed += sum.length;
    this.#end = Buffer.from(all.subarray(sum.length));
  }

  /** Returns the size and checksum once all pieces were added. Throws `failed_precondition` unless the backup is whole. */
  end(name: string): WholeBackup {
    const header = this.#end.toString("latin1", 0, CHECKSUM_FILE.length + 1);
    if (this.#end.length < END_BYTES || header !== `${CHECKSUM_FILE}\0`)
      throw damaged(name, "it does not end with a checksum, so it is cut off or is not a backup");
    const [wanted = "", bytes = ""] = this.#end.toString("latin1", BLOCK).split("\n", 1).join("").split(" ");
    if (Number(bytes) !== this.#summed)
      throw damaged(name, `it has ${this.#summed} bytes in place of the ${bytes} that were written`);
    const sha256 = this.#hash.digest("hex");
    if (sha256 !== wanted) throw damaged(name, "its content is not what was written");
    return { bytes: this.#summed + END_BYTES, sha256 };
  }
}

export const STDIN = "-";

/**
 * Reads a backup from a file, or from standard input for `-`. Rejects with `failed_precondition` unless it is whole. Each
 * piece is given to `take`, which can slow the reading down.
 */
export async function checkBackup(
  file: string,
  signal: AbortSignal,
  take: (chunk: Buffer) => Promise<void> | void = () => {},
): Promise<WholeBackup> {
  const check = new BackupCheck();
  try {
    for await (const chunk of readingOf(file, signal)) {
      check.add(chunk as Buffer);
      await take(chunk as Buffer);
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : unreadable(file, error as NodeJS.ErrnoException);
  }
  return check.end(sourceName(file));
}

/** How people call the source of a backup. */
export function sourceName(file: string): string {
  return file === STDIN ? "standard input" : file;
}

function readingOf(file: string, signal: AbortSignal): Readable {
  if (file !== STDIN) return createReadStream(file, { highWaterMark: 1024 * 1024, signal });
  if (process.stdin.isTTY)
    throw new UsageError("Standard input is a terminal. Send a backup to it, as in `cat backup.tar | hibernaut ...`.");
  return addAbortSignal(signal, process.stdin);
}

function damaged(name: string, why: string): CliError {
  return new CliError("failed_precondition", `${name} cannot be restored: ${why}. Use another backup.`);
}

function unreadable(file: string, error: NodeJS.ErrnoException): Error {
  const { code, message } = error;
  // Not of the file, but of what was done with its content.
  if (error instanceof CliError || error instanceof UsageError) return error;
  if (code === "ENOENT" || code === "ENOTDIR")
    return new CliError("not_found", `There is no file ${file}. Check the path.`);
  if (code === "EISDIR") return new UsageError(`${file} is a directory, not a backup. Name the file of the backup.`);
  if (code === "EACCES")
    return new CliError("permission_denied", `You may not read ${file}. Run the command as the user that made it.`);
  return new CliError("unavailable", `${sourceName(file)} cannot be read: ${message}.`);
}
