/** Removes a platform from the host: its guests, its network and, on request, its data. */
import { access, constants, readdir, readFile, realpath, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { guestsIn } from "@hibernaut/hypervisor/qemu/find-processes";
import { Cgroups } from "@hibernaut/hypervisor/qemu/jail/cgroups";
import { killProcess } from "@hibernaut/hypervisor/qemu/process";
import { mountsOf } from "@hibernaut/lib/mounts";
import { messageOf } from "@hibernaut/lib/text";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import type { Store } from "@hibernaut/store";
import { LOCK_FILE, lockDataDir } from "@hibernaut/store/lock";
import { openStore } from "@hibernaut/store/open";

interface UninstallOptions {
  dataDir: string;
  /** Also delete the data directory, with all apps, machines and snapshots. */
  data: boolean;
}

interface Uninstalled {
  /** Number of running guests that were ended. */
  guests: number;
  /** Whether the data was deleted. */
  data: boolean;
  /** Why the directory itself is still there, empty. Null unless its data was deleted and it could not be. */
  stays: string | null;
}

/** The database: the last file to be deleted, because it is what makes a directory a platform's. */
const DATABASE = "hibernaut.db";
/** What a file system has at its top, and needs for its repair. */
const LOST_AND_FOUND = "lost+found";

/**
 * Ends the guests of a data directory, and removes taps, bridge and rules. Sleeping machines stay unless `data` is set.
 * Safe to repeat. Rejects with `failed_precondition`, before anything is ended, while a platform is using the directory
 * and when `data` is set and cannot be deleted.
 */
export async function uninstall({ dataDir: path, data }: UninstallOptions): Promise<Uninstalled> {
  const dataDir = await existing(path);
  if (dataDir === undefined) {
    // The directory was deleted by hand. What is left in the kernel can be found by its path.
    await uninstallBridge(path);
    return { guests: 0, data: false, stays: null };
  }
  const deletes = data && !(await isEmpty(dataDir));
  if (deletes) await requireOurs(dataDir);
  const lock = lockDataDir(dataDir);
  try {
    const stays = deletes ? await requireDeletable(dataDir) : null;
    const guests = await guestsIn(dataDir);
    await Promise.all(guests.map((guest) => killProcess(guest)));
    await Cgroups.uninstall(dataDir);
    await uninstallBridge(dataDir);
    if (deletes) await deleteAll(dataDir, stays);
    return { guests: guests.length, data: deletes, stays };
  } finally {
    lock.release();
  }
}

/**
 * Describes for people what `data` would delete. Undefined when there is nothing to delete. Rejects with
 * `failed_precondition` when a platform is using the directory, when it is not a data directory, and when it cannot be
 * deleted.
 */
export async function describeData(path: string): Promise<string | undefined> {
  const dataDir = await existing(path);
  if (dataDir === undefined || (await isEmpty(dataDir))) return undefined;
  await requireOurs(dataDir);
  const lock = lockDataDir(dataDir);
  try {
    const stays = await requireDeletable(dataDir);
    const what = `will be deleted for good, with ${contents(join(dataDir, DATABASE))}.`;
    return stays === null
      ? `${dataDir} ${what}`
      : `Everything in ${dataDir} ${what} The empty directory stays, because ${stays}.`;
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
  await access(join(dataDir, DATABASE)).catch(() => {
    throw new HibernautError(
      "failed_precondition",
      `${dataDir} is not the data directory of a platform: it has no hibernaut.db. Nothing was deleted; check HIBERNAUT_DATA_DIR.`,
    );
  });
}

/** Whether there is nothing to delete, as after an earlier uninstall of a directory that had to stay. */
async function isEmpty(dataDir: string): Promise<boolean> {
  await requireWritable(dataDir);
  return (await readdir(dataDir)).every((name) => name === LOST_AND_FOUND || name === LOCK_FILE);
}

/**
 * Rejects unless everything in the directory can be deleted. Returns why the directory itself has to stay, as the end of
 * a sentence, or null.
 */
async function requireDeletable(dataDir: string): Promise<string | null> {
  const { itself, below } = mountsOf(dataDir, await readFile("/proc/self/mountinfo", "utf8"));
  const [mounted] = below;
  if (mounted !== undefined)
    throw new HibernautError(
      "failed_precondition",
      `${mounted} is a mount point within the data directory, so what is in it may not be the platform's. Nothing was ended or deleted. Unmount it first: umount ${mounted}`,
    );
  const entries = await readdir(dataDir, { withFileTypes: true });
  for (const entry of entries)
    if (entry.isDirectory() && entry.name !== LOST_AND_FOUND) await requireWritable(join(dataDir, entry.name));
  if (itself) return "it is a mount point";
  const isRemovable = await access(dirname(dataDir), constants.W_OK).then(
    () => true,
    () => false,
  );
  return isRemovable ? null : `${dirname(dataDir)} is not writable`;
}

async function requireWritable(path: string): Promise<void> {
  await access(path, constants.W_OK | constants.X_OK).catch((error: NodeJS.ErrnoException) => {
    throw new HibernautError(
      "failed_precondition",
      `${path} cannot be deleted (${error.code}). Nothing was ended or deleted. ${error.code === "EROFS" ? "Remount its file system writable" : "Run the command as the user of the platform, or as root"}.`,
    );
  });
}

async function deleteAll(dataDir: string, stays: string | null): Promise<void> {
  const names = (await readdir(dataDir)).filter((name) => stays === null || name !== LOST_AND_FOUND);
  const [last, first] = [names.filter(isOfDatabase), names.filter((name) => !isOfDatabase(name))];
  try {
    for (const name of [...first, ...last.toSorted().toReversed()])
      await rm(join(dataDir, name), { recursive: true, force: true });
    if (stays === null) await rmdir(dataDir);
  } catch (error) {
    throw new HibernautError(
      "unavailable",
      `Not everything in ${dataDir} could be deleted (${messageOf(error)}). The machines have ended. Run the command again to delete the rest.`,
    );
  }
}

function isOfDatabase(name: string): boolean {
  return name === DATABASE || name.startsWith(`${DATABASE}-`);
}
