/** Whether a directory that is a target is elsewhere than the data directory, whatever names lead there. */
import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { adviceFor, ifAbsent, isThere } from "@hibernaut/lib/absence";
import { messageOf } from "@hibernaut/lib/text";

/** Rejects like {@link requireApart}, and when there is nothing above it: where a disk is not mounted, nothing is made in its place. */
export async function requireElsewhere(path: string, dataDir: string): Promise<void> {
  await requireApart(path, dataDir);
  const parent = dirname(path);
  if (await isThere(parent)) return;
  const message = `There is no directory ${parent}. If it is on a disk that has to be mounted, mount it; otherwise make it first: mkdir -p ${parent}`;
  throw new HibernautError("failed_precondition", message, { field: "url" });
}

/**
 * Rejects a directory that is lost with the data directory or would be a part of itself: one of them is the other, or is in it. Names
 * say little about that, because of links and mounts, so directories are compared by what the kernel knows them by.
 */
export async function requireApart(path: string, dataDir: string): Promise<void> {
  const target = await pathTo(path).catch((error: unknown) => {
    throw unknown(path, error);
  });
  for (const place of await placesOf(dataDir)) {
    const own = await pathTo(place);
    const isIn = own.itself !== undefined && target.directories.has(own.itself);
    const isAround = target.itself !== undefined && own.directories.has(target.itself);
    if (!isIn && !isAround) continue;
    const message = `${path} and the data directory ${dataDir} are in each other, so both would be lost at once. Use a place on another disk or another host.`;
    throw new HibernautError("invalid_argument", message, { field: "url" });
  }
}

/** The data directory, and what a link in it leads to, such as a larger disk for volumes. */
async function placesOf(dataDir: string): Promise<string[]> {
  const entries = await readdir(dataDir, { withFileTypes: true });
  const links = entries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => join(dataDir, name));
  return [dataDir, ...links];
}

/** Directories as the kernel knows them. */
interface PathTo {
  /** The directory at the path. Undefined while there is none. */
  itself: string | undefined;
  /** All that lead to it, as far as they are there, with it. */
  directories: ReadonlySet<string>;
}

async function pathTo(path: string): Promise<PathTo> {
  const real = await realpath(path).catch(ifAbsent(undefined));
  if (real === undefined) {
    // A link that leads nowhere yet is in its directory at least.
    return { itself: undefined, directories: (await pathTo(dirname(path))).directories };
  }
  const directories: string[] = [];
  for (let at = real; ; at = dirname(at)) {
    const { dev, ino } = await stat(at, { bigint: true });
    directories.push(`${dev}:${ino}`);
    if (at === dirname(at)) break;
  }
  return { itself: directories[0], directories: new Set(directories) };
}

function unknown(path: string, error: unknown): HibernautError {
  const advice = adviceFor(error) ?? "Choose another place, or change the permissions of the directories above it.";
  const message = `It is not known where ${path} leads: ${messageOf(error)}. ${advice}`;
  return new HibernautError("failed_precondition", message, { field: "url" });
}
