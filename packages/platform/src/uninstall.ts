/** Removes a platform from the host: its guests, its network and, on request, its data. */
import { access, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "./domain/errors.ts";
import { findProcesses, killProcess } from "./hypervisor/qemu/process.ts";
import { uninstallBridge } from "./network/bridge/remove.ts";
import type { Store } from "./store/contract.ts";
import { lockDataDir } from "./store/lock.ts";
import { openStore } from "./store/store.ts";
import { messageOf } from "./lib/text.ts";

interface UninstallOptions {
  dataDir: string;
  /** Also delete the data directory, with all apps, machines and snapshots. */
  data: boolean;
}

interface Uninstalled {
  /** Number of running guests that were ended. */
  guests: number;
  /** Whether the data directory was deleted. */
  data: boolean;
}

/**
 * Ends the guests of a data directory, and removes taps, bridge and rules. Sleeping machines stay unless `data` is set.
 * Safe to repeat. Rejects with `failed_precondition` while a platform is using the directory.
 */
export async function uninstall({ dataDir: path, data }: UninstallOptions): Promise<Uninstalled> {
  const dataDir = await existing(path);
  if (dataDir === undefined) {
    // The directory was deleted by hand. What is left in the kernel can be found by its path.
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

/**
 * Describes for people what `data` would delete. Undefined when the directory does not exist. Rejects with
 * `failed_precondition` when a platform is using the directory, or when it is not a data directory.
 */
export async function describeData(path: string): Promise<string | undefined> {
  const dataDir = await existing(path);
  if (dataDir === undefined) return undefined;
  const lock = lockDataDir(dataDir);
  try {
    await requireOurs(dataDir);
    return `${dataDir} will be deleted for good, with ${contents(join(dataDir, "hibernaut.db"))}.`;
  } finally {
    lock.release();
  }
}

function contents(database: string): string {
  try {
    const store = openStore(database);
    try {
      return contentsOf(store);
    } finally {
      store.close();
    }
  } catch (error) {
    return `everything in it; the database cannot be read (${messageOf(error)})`;
  }
}

function contentsOf({ apps, machines, volumes, secrets }: Store): string {
  const names = apps.list().map(({ name }) => name);
  const disks = volumes.list();
  const snapshots = disks.flatMap(({ id }) => volumes.listSnapshots(id)).length;
  const hidden = names.flatMap((name) => secrets.list(name)).length;
  const count = (number: number, word: string) => `${number} ${word}${number === 1 ? "" : "s"}`;
  return [
    `${count(names.length, "app")}${names.length === 0 ? "" : ` (${names.join(", ")})`}`,
    count(machines.list().length, "machine"),
    `${count(disks.length, "volume")} with ${count(snapshots, "snapshot")}`,
    count(hidden, "secret"),
    "all images",
  ].join(", ");
}

/** Returns the real path of the directory. Undefined when it does not exist. */
function existing(path: string): Promise<string | undefined> {
  return realpath(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

/** Rejects unless it is a data directory, so that a typing error in a setting does not delete a home directory. */
async function requireOurs(dataDir: string): Promise<void> {
  await access(join(dataDir, "hibernaut.db")).catch(() => {
    throw new HibernautError(
      "failed_precondition",
      `${dataDir} is not the data directory of a platform: it has no hibernaut.db. Nothing was deleted; check HIBERNAUT_DATA_DIR.`,
    );
  });
}
