/** Whether the data directory can be used, and has room. */
import { access, constants, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { canCloneIn, freeBytes } from "@hibernaut/lib/disk-files";
import { messageOf } from "@hibernaut/lib/text";
import { LONGEST_SOCKET, MAX_SOCKET_PATH } from "@hibernaut/settings";
import { type Diagnosis, examine } from "./diagnosis.ts";

/** Room for an image, a writable layer and a snapshot of a small machine. */
const COMFORTABLE_BYTES = 4 * 1024 ** 3;

/** Checks that the data directory's path is short enough for the sockets of machines. */
export function checkSocketPath(dataDir: string): Diagnosis {
  const name = "socket path";
  const length = Buffer.byteLength(dataDir + LONGEST_SOCKET);
  const found = `${length} of ${MAX_SOCKET_PATH} bytes`;
  if (length <= MAX_SOCKET_PATH) return { name, status: "ok", found };
  return {
    name,
    status: "fail",
    found: `${found}: ${dataDir} is too long for sockets`,
    fix: "export HIBERNAUT_DATA_DIR=/var/lib/hibernaut",
  };
}

export async function checkDataDir(dataDir: string): Promise<Diagnosis> {
  const name = "data directory";
  const probe = join(dataDir, `.doctor-${process.pid}`);
  try {
    const folder = await existing(dataDir);
    // The first start makes a missing directory; a check makes nothing.
    if (folder === dataDir) await writeFile(probe, "");
    else await access(folder, constants.W_OK);
    return { name, status: "ok", found: folder === dataDir ? dataDir : `${dataDir} (will be created)` };
  } catch (error) {
    const fix = (await isForeign(dataDir))
      ? 'it belongs to another user; use your own: export HIBERNAUT_DATA_DIR="$HOME/.local/share/hibernaut"'
      : `install -d -m 700 -o "$(id -un)" ${dataDir}`;
    return { name, status: "fail", found: messageOf(error), fix };
  } finally {
    await rm(probe, { force: true }).catch(() => {});
  }
}

/** Whether a directory exists, or might exist where we may not look, and belongs to another user. */
function isForeign(folder: string): Promise<boolean> {
  return stat(folder).then(
    ({ uid }) => uid !== process.getuid?.(),
    (error: NodeJS.ErrnoException) => error.code === "EACCES",
  );
}

export function checkDisk(dataDir: string): Promise<Diagnosis> {
  return examine("disk", { status: "fail", fix: `df -h ${dataDir}` }, async () => {
    const free = await freeBytes(await existing(dataDir));
    const found = `${(free / 1024 ** 3).toFixed(1)} GB free`;
    if (free >= COMFORTABLE_BYTES) return { status: "ok", found };
    const why = `${found}; a snapshot needs as much space as its machine has memory`;
    return { status: "warn", found: why, fix: `du -xh --max-depth=2 ${dataDir} | sort -h | tail` };
  });
}

/** Whether a copy of a disk takes its space, or only what changes. Nothing is wrong with either. */
export async function checkCopies(dataDir: string): Promise<Diagnosis> {
  const shares = await canCloneIn(await existing(dataDir));
  const found = shares
    ? "a fork's disk shares the blocks of its origin until one of them changes"
    : "a fork's disk takes all of its space, because this file system cannot share blocks (XFS and btrfs can)";
  return { name: "copies", status: "ok", found };
}

/** Returns the directory itself, or the nearest of its parents that exists. */
export async function existing(folder: string): Promise<string> {
  for (let at = folder; ; at = dirname(at)) {
    const there = await access(at).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
    );
    if (there || at === dirname(at)) return at;
  }
}
