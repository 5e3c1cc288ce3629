/** Packs files of this computer as an archive for a machine. */
import { lstat, opendir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pack as newArchive, type Pack } from "tar-stream";
import { ApiError } from "../error.ts";
import { addEntry, addFile } from "./archive-entries.ts";

/** Modes that are sent: permissions, set-user-ID, set-group-ID and sticky. */
const MODES = 0o7777;

/**
 * Returns the archive of a file or directory, whose entries begin with `name`, or with `.`. Files are read as the archive is.
 *
 * @param skipped called with the path of each device, pipe and socket, which mean nothing elsewhere
 */
export function pack(path: string, name: string | undefined, skipped: (path: string) => void): Readable {
  const archive = newArchive();
  add(archive, path, name ?? ".", skipped).then(
    () => archive.finalize(),
    (error: unknown) => archive.destroy(error as Error),
  );
  // The archive's own stream cannot be unpiped.
  return Readable.from(archive);
}

async function add(archive: Pack, path: string, name: string, skipped: (path: string) => void): Promise<void> {
  const found = await lstat(path);
  const { mode, uid, gid, mtime } = found;
  const common = { name, mode: mode & MODES, uid, gid, mtime };
  if (found.isSymbolicLink()) return addEntry(archive, { ...common, type: "symlink", linkname: await readlink(path) });
  // A file that grows is copied as large as it was.
  if (found.isFile()) return addFile(archive, path, { ...common, type: "file", size: found.size }, () => smaller(path));
  if (!found.isDirectory()) return skipped(path);
  await addEntry(archive, { ...common, name: `${name}/`, type: "directory" });
  for await (const { name: child } of await opendir(path))
    await add(archive, join(path, child), `${name}/${child}`, skipped);
}

function smaller(path: string): ApiError {
  return new ApiError({
    code: "aborted",
    message: `${path} became smaller while it was copied. Copy it again when nothing writes to it.`,
  });
}
