/** Taking a platform off the host: its guests, its network and, when asked to, its data. */
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
  /** Delete the data folder, too: apps, machines and all that sleeps. */
  data: boolean;
}

interface Uninstalled {
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
  const dataDir = await existing(path);
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

/**
 * What `data` would delete, for people; undefined when there is no such folder. Rejects with `failed_precondition`
 * when a platform runs on it, or when it is none of a platform's.
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
    return `all that it holds; that cannot be read (${messageOf(error)})`;
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

/** The one path that names the folder, if it is there. */
function existing(path: string): Promise<string | undefined> {
  return realpath(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
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
