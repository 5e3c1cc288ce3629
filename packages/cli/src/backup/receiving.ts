/** Writes a backup to a file that appears only when it is whole. */
import { createWriteStream } from "node:fs";
import { access, constants, open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ifAbsent, isThere } from "@hibernaut/lib/absence";
import { CliError, UsageError } from "../failure.ts";
import { BackupCheck, type WholeBackup } from "./checking.ts";

/** What a file is called until it is whole. */
const PART = ".part";

/**
 * Throws a usage error when there is something at the path already, because a backup is never replaced, or when nothing
 * can be written there: before the platform begins.
 */
export async function requireNew(file: string): Promise<void> {
  if (await isThere(file)) throw new UsageError(`${file} already exists. Choose another name, or delete it first.`);
  const folder = dirname(file);
  const found = await stat(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT")
      throw new UsageError(`There is no directory ${folder}. Create it first: mkdir -p ${folder}`);
    if (error.code === "EACCES") throw new UsageError(notWritable(folder));
    return ifAbsent(undefined)(error);
  });
  if (found?.isDirectory() !== true)
    throw new UsageError(`${folder} is not a directory. Choose another place for the backup.`);
  await access(folder, constants.W_OK | constants.X_OK).catch(() => {
    throw new UsageError(notWritable(folder));
  });
}

function notWritable(folder: string): string {
  return `You may not write in ${folder}. Choose another place for the backup, or change the directory's permissions.`;
}

/**
 * Writes the archive to a file that only its owner can read. Rejects when it is not whole or cannot be written; no file is
 * left then.
 */
export async function receiveFile(archive: Readable, counter: Transform, file: string): Promise<WholeBackup> {
  const part = file + PART;
  const check = new BackupCheck();
  await rm(part, { force: true });
  try {
    const out = createWriteStream(part, { flags: "wx", mode: 0o600, flush: true });
    await pipeline(archive, counter, checking(check), out).catch((error: unknown) => {
      throw unwritable(error, file);
    });
    const whole = check.end(file);
    await rename(part, file);
    await flushFolder(dirname(file));
    return whole;
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/** Writes the archive to standard output. Rejects when it is not whole. */
export async function receiveStream(archive: Readable, counter: Transform): Promise<WholeBackup> {
  const check = new BackupCheck();
  await pipeline(archive, counter, checking(check), process.stdout, { end: false });
  return check.end("standard output");
}

function checking(check: BackupCheck): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      check.add(chunk);
      done(null, chunk);
    },
  });
}

async function flushFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync();
}

function unwritable(error: unknown, file: string): unknown {
  const { code, syscall, message } = (error ?? {}) as NodeJS.ErrnoException;
  if (code === "ENOSPC")
    return new CliError("unavailable", `The disk of ${file} is full. Free some space, or back up to another disk.`);
  return syscall === "open" || syscall === "write"
    ? new CliError("unavailable", `${file} cannot be written: ${message}.`)
    : error;
}
