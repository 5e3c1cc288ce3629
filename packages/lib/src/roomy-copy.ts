/** Copies of files that are as large as a memory: they must not take the last of a disk on which guests and databases write. */
import { rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { cloneFile, copySparseUntilAborted, lackOfRoom, RESERVE_TIMEOUT_MS, reserve } from "./disk-files.ts";

/** What the copies that are being made may still take, in bytes. Those on other disks count, too: that is on the safe side. */
let promised = 0;

/**
 * Clones a file, or copies it and reserves the space of its holes, if that leaves the disk some room. Rejects with the code
 * `ENOSPC` otherwise, and when aborted; then nothing is left at `to`.
 */
export async function copyLeavingRoom(
  from: string,
  to: string,
  signal: AbortSignal,
  { free }: { free?(folder: string): Promise<number> } = {},
): Promise<void> {
  signal.throwIfAborted();
  await rm(to, { force: true });
  try {
    if (await cloned(from, to)) return;
    const { size } = await stat(from);
    const folder = dirname(to);
    promised += size;
    try {
      // One that ends while the disk is asked counts in any case.
      const lack = await lackOfRoom(folder, promised, { free });
      if (lack !== undefined) throw noSpace(folder, lack);
      await copySparseUntilAborted(from, to, signal);
      await reserve(to, size, { timeoutMs: RESERVE_TIMEOUT_MS });
    } finally {
      promised -= size;
    }
    signal.throwIfAborted();
  } catch (error) {
    await rm(to, { force: true });
    throw error;
  }
}

async function cloned(from: string, to: string): Promise<boolean> {
  return cloneFile(from, to).then(
    () => true,
    () => false,
  );
}

function noSpace(folder: string, { free, needed }: { free: number; needed: number }): Error {
  const message = `no space left: the disk of ${folder} has ${free} MB free, and ${needed} MB are needed`;
  return Object.assign(new Error(message), { code: "ENOSPC" });
}
