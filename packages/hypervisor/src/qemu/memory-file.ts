/** The file that is a guest's memory. */
import { rm, stat } from "node:fs/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { isPassing } from "@hibernaut/lib/absence";
import { allocatedBytes, createSparse, reserve } from "@hibernaut/lib/disk-files";
import { failureReason } from "@hibernaut/lib/exec";
import { besideMemory } from "../contract.ts";
import type { QemuLimits } from "./limits.ts";

type ReserveLimits = Pick<QemuLimits, "reserveMs">;

/**
 * Makes a new memory file; the old one cannot be reused, because a snapshot may still link to it. Rejects like
 * {@link reserveMemory}.
 */
export async function makeMemoryFile(path: string, megabytes: number, limits: ReserveLimits): Promise<void> {
  for (const beside of Object.values(besideMemory(path))) await rm(beside, { force: true });
  await createSparse(path, megabytes * 1024 * 1024);
  try {
    await reserveMemory(path, megabytes, limits);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/** A memory file from a backup has holes where the guest had nothing: what it may still write gets its space now. */
export async function reserveHoles(path: string, megabytes: number, limits: ReserveLimits): Promise<void> {
  const file = await stat(path);
  if (allocatedBytes(file) < file.size) await reserveMemory(path, megabytes, limits);
}

/**
 * Reserves the disk space of a memory file and keeps what is in it: the kernel kills a guest that touches memory for
 * which a full disk has no space. Rejects with `unavailable` when there is not enough, or it takes too long.
 */
async function reserveMemory(path: string, megabytes: number, { reserveMs }: ReserveLimits): Promise<void> {
  try {
    await reserve(path, megabytes * 1024 * 1024, { timeoutMs: reserveMs });
  } catch (error) {
    if (isPassing(error)) throw error; // `fallocate` could not even be started
    if ((error as { killed?: boolean }).killed === true)
      throw new HibernautError(
        "unavailable",
        `Reserving ${megabytes} MB for guest memory at ${path} took longer than ${reserveMs / 1000} s. Start the machine again when the disk is less busy; if this host is always slow, set HIBERNAUT_SLOW_FACTOR, say to 20.`,
      );
    throw new HibernautError(
      "unavailable",
      `There is no room for ${megabytes} MB of guest memory at ${path}: ${failureReason(error)}. Free some disk space.`,
    );
  }
}
