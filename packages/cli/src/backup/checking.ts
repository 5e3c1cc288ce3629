/**
 * Whether a backup is whole: its last entry is a checksum of everything before it.
 *
 *   entries | backup.sha256: 512 bytes of header, 512 of content | 1024 zero bytes
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { CliError } from "../failure.ts";

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

  /** Takes the next piece. */
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

/** Reads a backup from a file. Rejects with `failed_precondition` unless it is whole. */
export async function checkBackup(file: string, signal: AbortSignal): Promise<WholeBackup> {
  const check = new BackupCheck();
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024, signal }))
      check.add(chunk as Buffer);
  } catch (error) {
    throw signal.aborted ? signal.reason : unreadable(file, error as NodeJS.ErrnoException);
  }
  return check.end(file);
}

function damaged(name: string, why: string): CliError {
  return new CliError("failed_precondition", `${name} cannot be restored: ${why}. Use another backup.`);
}

function unreadable(file: string, { code, message }: NodeJS.ErrnoException): CliError {
  if (code === "ENOENT") return new CliError("not_found", `There is no file ${file}. Check the path.`);
  return new CliError("unavailable", `${file} cannot be read: ${message}.`);
}
