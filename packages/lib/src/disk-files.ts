/** Files that hold a disk. They are sparse: only what was written takes up space. */
import { constants, copyFile, mkdir, open, rm, stat, statfs, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { failureReason, LOW_PRIORITY, run, runUntilAborted } from "./exec.ts";

/** The unit of `blocks` in stat(2), whatever the file system. */
const BLOCK_BYTES = 512;
const BYTES_PER_MB = 1024 * 1024;

/** The holes of a file of at most this size, in bytes, are filled when it is copied: to start a program takes longer. */
const SMALL_BYTES = 1024 * 1024;

/** What large files leave of a disk for guests that write, and for the database, which must be able to say that it is full. Bytes. */
export const SPARE_BYTES = 64 * 1024 * 1024;

/** How long it may take to reserve the space of a memory, in milliseconds: a few on most file systems. */
export const RESERVE_TIMEOUT_MS = 30_000;

/** The space that a file takes up on the disk, in bytes: without its holes. */
export function allocatedBytes({ blocks }: { blocks: number }): number {
  return blocks * BLOCK_BYTES;
}

/** How many bytes of the disk that a directory is on are free for anyone. Rejects with Node's error. */
export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** What a disk has and what is needed of it, in MB. */
interface LackOfRoom {
  free: number;
  needed: number;
}

/**
 * Undefined when the disk that a directory is on has room for this many bytes besides `spare`, which is {@link SPARE_BYTES}
 * by default. Rejects with Node's error.
 */
export async function lackOfRoom(
  directory: string,
  bytes: number,
  {
    spare = SPARE_BYTES,
    free = freeBytes,
  }: { spare?: number; free?: ((directory: string) => Promise<number>) | undefined } = {},
): Promise<LackOfRoom | undefined> {
  const left = await free(directory);
  const needed = bytes + spare;
  if (left >= needed) return undefined;
  return { free: Math.floor(left / BYTES_PER_MB), needed: Math.ceil(needed / BYTES_PER_MB) };
}

/** Creates a file of `bytes` bytes without any content, readable by its owner alone. Replaces a file that exists. */
export async function createSparse(path: string, bytes: number): Promise<void> {
  await rm(path, { force: true });
  await writeFile(path, "", { mode: 0o600 });
  await truncate(path, bytes);
}

/**
 * Reserves the disk space of a whole file, and keeps what is in it. Does nothing where the file system cannot do that: ZFS,
 * and some network file systems, unless the file is small. Rejects with Node's error of the write, or of `fallocate`, when there
 * is not enough.
 */
export async function reserve(path: string, bytes: number, { timeoutMs }: { timeoutMs: number }): Promise<void> {
  if (bytes <= SMALL_BYTES) return fillHoles(path, bytes);
  try {
    await run("fallocate", ["--length", String(bytes), "--", path], { timeoutMs });
  } catch (error) {
    if (!/not supported/i.test(failureReason(error))) throw error;
  }
}

/** Writes what a file has, and zeros after its end, to where it is. */
async function fillHoles(path: string, bytes: number): Promise<void> {
  await using file = await open(path, "r+");
  const content = Buffer.alloc(bytes);
  await file.read(content, 0, bytes, 0);
  await file.write(content, 0, bytes, 0);
}

/** How to make a file system. */
interface Ext4Options {
  /** Size of the journal; by default mkfs.ext4 derives it from the size of the file. */
  journalMb?: number;
  timeoutMs: number;
}

/**
 * Makes an empty ext4 file system in a file that has its final size. No blocks are reserved for root, because nothing
 * that keeps a system running is stored there.
 */
export async function formatExt4(path: string, { journalMb, timeoutMs }: Ext4Options): Promise<void> {
  const journal = journalMb === undefined ? [] : ["-J", `size=${journalMb}`];
  const lazy = ["-E", "lazy_itable_init=1,lazy_journal_init=1"];
  await run("mkfs.ext4", ["-q", "-F", "-m", "0", ...journal, ...lazy, path], { timeoutMs });
}

/**
 * Clones a file: takes a moment whatever its size, because both share their blocks until one of them is written to.
 * Rejects where the file system cannot do that; btrfs and XFS can, ext4 cannot.
 */
export async function cloneFile(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE);
}

/**
 * Clones a file, or copies it where the file system cannot clone; holes are then not filled, unless it is small. Rejects with
 * Node's error of the copy, or of `cp`, when that fails.
 */
export async function copySparse(from: string, to: string, { timeoutMs }: { timeoutMs: number }): Promise<void> {
  await copyWith(from, to, () => run("cp", ["--sparse=always", "--", from, to], { timeoutMs }));
}

async function copyWith(from: string, to: string, copyLarge: () => Promise<unknown>): Promise<void> {
  await rm(to, { force: true });
  if ((await stat(from)).size <= SMALL_BYTES) return copyFile(from, to, constants.COPYFILE_FICLONE);
  try {
    await cloneFile(from, to);
  } catch {
    await copyLarge();
  }
}

/** Whether someone waits for a copy. By default, someone does. */
export interface CopyHaste {
  hurried?: boolean;
}

/** Whether the file system of a directory, which is made if needed, can clone files. */
export async function canCloneIn(folder: string): Promise<boolean> {
  const probe = join(folder, `.probe-${process.pid}-${Math.random().toString(16).slice(2)}`);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(probe, "x");
    await cloneFile(probe, `${probe}.clone`);
    return true;
  } catch {
    return false;
  } finally {
    await Promise.all([probe, `${probe}.clone`].map((path) => rm(path, { force: true })));
  }
}

/**
 * Does what {@link copySparse} does, for as long as it takes or until the signal is aborted: it then rejects with the
 * signal's reason, once nothing writes to `to` any more. `hurried: false` leaves CPU and disk to others.
 */
export async function copySparseUntilAborted(
  from: string,
  to: string,
  signal: AbortSignal,
  { hurried = true }: CopyHaste = {},
): Promise<void> {
  signal.throwIfAborted();
  const [program, ...args] = [...(hurried ? [] : LOW_PRIORITY), "cp", "--sparse=always", "--", from, to];
  await copyWith(from, to, () => runUntilAborted(program ?? "cp", args, signal));
  signal.throwIfAborted();
}
