/** Taking a platform off the host: its guests, its network and, when asked to, its data. */
import { access, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "./errors.ts";
import { findProcesses, killProcess } from "./hypervisor/qemu/process.ts";
import { uninstallBridge } from "./network/bridge/remove.ts";
import { lockDataDir } from "./store/lock.ts";

export interface UninstallOptions {
  dataDir: string;
  /** Delete the data folder, too: apps, machines and all that sleeps. */
  data: boolean;
}

export interface Uninstalled {
  /** Guests that ran and were ended. */
  guests: number;
  /** Whether the data folder was deleted. */
  data: boolean;
}

/**
 * Ends the guests of a data folder and removes taps, bridge and rules; what sleeps stays unless `data`. Fine to
 * repeat. Rejects with `failed_precondition` while a platform runs on the folder.
 */
export async function uninstall({ dataDir: path, data }: UninstallOptions): Promise<Uninstalled> {
  const dataDir = await realpath(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (dataDir === undefined) {
    // The folder was deleted by hand; what it left in the kernel goes by its name.
    await uninstallBridge(path);
    return { guests: 0, data: false };
  }
  const lock = lockDataDir(dataDir);
  try {
    if (data) await requireOurs(dataDir);
    const guests = await findProcesses(join(dataDir, "run"));
    await Promise.all(guests.map((guest) => killProcess(guest)));
    await uninstallBridge(dataDir);
    if (data) await rm(dataDir, { recursive: true, force: true });
    return { guests: guests.length, data };
  } finally {
    lock.release();
  }
}

/** A setting with a slip in it must not delete somebody's home. */
async function requireOurs(dataDir: string): Promise<void> {
  await access(join(dataDir, "hibernaut.db")).catch(() => {
    throw new HibernautError(
      "failed_precondition",
      `${dataDir} is no data folder of a platform: it has no hibernaut.db. Nothing was deleted; check HIBERNAUT_DATA_DIR.`,
    );
  });
}
