/** The directory of what would have to be fetched or read again: by restic, and of manifests and sums. */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { allocatedBytes } from "@hibernaut/lib/disk-files";

/** The name of the directory in the data directory. It is not a part of backups, and may be deleted. */
export const RESTIC_FOLDER = "backup-cache";
/**
 * A cache that takes more of the disk is deleted, in bytes: the index of a repository of 10 TB has some 500 MB, and without it
 * the next backup fetches that.
 */
const MOST_BYTES = 2 * 1024 ** 3;

/** Deletes what was left when a platform was killed: private keys among it. Call it before restic runs. */
export async function clearTemporary(folder: string): Promise<void> {
  await rm(join(folder, "tmp"), { recursive: true, force: true });
  const cache = join(folder, "cache");
  for (const name of await readdir(cache).catch(ifAbsent([])))
    if (name.startsWith("restic-check-cache-")) await rm(join(cache, name), { recursive: true, force: true });
}

/** Deletes the cache when it has grown too large. */
export async function boundCache(folder: string, most = MOST_BYTES): Promise<void> {
  const cache = join(folder, "cache");
  let bytes = 0;
  for (const name of await readdir(cache, { recursive: true }).catch(ifAbsent([])))
    bytes += await stat(join(cache, name)).then(allocatedBytes, ifAbsent(0));
  if (bytes > most) await rm(cache, { recursive: true, force: true });
}
