/**
 * The memory of a guest that began with a file that others begin with, too. QEMU maps that privately: what the guest writes
 * is in QEMU alone, until a capture puts a file of the guest's own in its place.
 */
import { createReadStream } from "node:fs";
import { type FileHandle, link, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import { ifAbsent } from "@hibernaut/lib/absence";
import { flush } from "@hibernaut/lib/durable";
import { PAGE, piecesOf, READ_BYTES, rangesOf } from "@hibernaut/lib/page-ranges";
import { copyLeavingRoom } from "@hibernaut/lib/roomy-copy";
import { Semaphore } from "@hibernaut/lib/semaphore";
import { besideMemory } from "../contract.ts";
import { hasCapability } from "./capabilities.ts";
import { anonymousIn, isOwn, type Mapping, mappingOf, pagesOf } from "./mapped-file.ts";

/** Where Yama says who may do that; at 3, nobody (https://docs.kernel.org/admin-guide/LSM/Yama.html). */
const YAMA = "/proc/sys/kernel/yama/ptrace_scope";
const NOBODY = 3;

/** How much is read of what the kernel says of a QEMU's mappings, in bytes: ten times as much as is usual. A guest may have taken it over. */
const LONGEST_SMAPS = 4 * 1024 * 1024;

/** How many memories are copied at once: each takes the disk from every machine, and an app can let many sleep at a time. */
const COPIES_AT_ONCE = 2;
const copying = new Semaphore(COPIES_AT_ONCE);

/** Whether this process may read the memory of QEMUs that run as other users. */
export async function maySeeMemory(): Promise<boolean> {
  const scope = await readFile(YAMA, "utf8").catch(() => "0");
  return Number(scope) < NOBODY && (await hasCapability("CAP_SYS_PTRACE"));
}

/** Whose memory, and where it is. */
interface Borrower {
  pid: number;
  /** The path of the file that QEMU has mapped, or that has taken its place. */
  memory: string;
}

/**
 * Copies a borrowed memory next to it, durably unless `durable` is false, for {@link keepOwnMemory}. The guest may run: nobody
 * writes to the file. Does nothing once the machine has a file of its own. Rejects when aborted, and when the disk has no room for
 * all of it: as for any other machine, its space is reserved, so that neither this guest nor a later wake can lack it.
 */
export async function prepareOwnMemory(
  borrower: Borrower,
  { durable }: { durable: boolean },
  signal: AbortSignal,
): Promise<void> {
  if (!(await find(borrower)).isLent) return;
  const { own } = besideMemory(borrower.memory);
  try {
    await copying.run(() => copyLeavingRoom(borrower.memory, own, signal), signal);
    if (durable) await flush(own);
  } catch (error) {
    await rm(own, { force: true });
    throw error;
  }
}

/**
 * Puts all that a paused guest has in its memory into a file of its own, at the path of the one that QEMU has mapped, which
 * stays as it is; durable, unless `durable` is false. The first time, that is the prepared one. Later, it is brought up to date.
 * Rejects when aborted, when the disk is full, and when QEMU has ended; then nobody else's file has changed.
 */
export async function keepOwnMemory(
  borrower: Borrower,
  { durable }: { durable: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { pid, memory } = borrower;
  const { mapping, isLent } = await find(borrower);
  // A page that the guest has written to once stays its own: those of now include those of an earlier capture.
  if (!isLent) return writeOwnPages(pid, mapping, memory, { durable, signal });
  const { own, lent } = besideMemory(memory);
  try {
    await writeOwnPages(pid, mapping, own, { durable, signal });
    await rm(lent, { force: true });
    await link(memory, lent);
    await rename(own, memory);
  } catch (error) {
    await rm(own, { force: true });
    throw error;
  }
  if (durable) await flush(dirname(memory));
}

/**
 * Returns how much a guest has in QEMU's own memory, in bytes; less when QEMU has more mappings than any should have. Rejects when
 * QEMU has ended.
 */
export async function ownMemory({ pid, memory }: Borrower): Promise<number> {
  return anonymousIn(await text(createReadStream(`/proc/${pid}/smaps`, { end: LONGEST_SMAPS - 1 })), memory);
}

/** QEMU has ended, and reads nothing any more: what it had mapped needs no name for it, and what was prepared has no use. */
export async function returnMemory({ memory }: Pick<Borrower, "memory">): Promise<void> {
  for (const path of Object.values(besideMemory(memory))) await rm(path, { force: true });
}

/**
 * Finds what QEMU has mapped, and whether the file at the path is still that. The file system says so, to which QEMU cannot write
 * there: one that a guest has taken over must not get the platform to write to what is others', too.
 */
async function find({ pid, memory }: Borrower): Promise<{ mapping: Mapping; isLent: boolean }> {
  const there = await stat(memory);
  const before = await stat(besideMemory(memory).lent).catch(ifAbsent(there));
  const mapping = await mappingOf(pid, memory, there.size);
  if (mapping?.inode !== before.ino) throw new Error(`process ${pid} has not mapped the memory that it was given`);
  return { mapping, isLent: before.ino === there.ino };
}

async function writeOwnPages(
  pid: number,
  mapping: Mapping,
  to: string,
  { durable, signal }: { durable: boolean; signal: AbortSignal },
): Promise<void> {
  const ranges = rangesOf(await pagesOf(pid, mapping, isOwn));
  await using seen = await open(`/proc/${pid}/mem`, "r");
  await using file = await open(to, "r+");
  await file.chmod(0o600);
  const piece = Buffer.allocUnsafeSlow(READ_BYTES);
  for (const [from, until] of piecesOf(ranges)) {
    signal.throwIfAborted();
    const bytes = (until - from) * PAGE;
    await readAll(seen, piece.subarray(0, bytes), (mapping.begin + from) * PAGE);
    await writeAll(file, piece.subarray(0, bytes), from * PAGE);
  }
  if (durable) await file.sync();
}

async function readAll(file: FileHandle, piece: Buffer, position: number): Promise<void> {
  for (let at = 0; at < piece.length; ) {
    const { bytesRead } = await file.read(piece, at, piece.length - at, position + at);
    if (bytesRead === 0) throw new Error("QEMU has ended");
    at += bytesRead;
  }
}

async function writeAll(file: FileHandle, piece: Buffer, position: number): Promise<void> {
  for (let at = 0; at < piece.length; )
    at += (await file.write(piece, at, piece.length - at, position + at)).bytesWritten;
}
