/** Packs files of this computer as an archive for a machine. */
import { createReadStream } from "node:fs";
import { lstat, opendir, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Header, pack as newArchive, type Pack } from "tar-stream";
import { CliError } from "../failure.ts";

/** Modes that are sent: permissions, set-user-ID, set-group-ID and sticky. */
const MODES = 0o7777;

/**
 * Returns the archive of a file or directory, whose entries begin with `name`, or with `.`. Files are read as the archive is.
 *
 * @param skipped called with the path of each device, pipe and socket, which mean nothing elsewhere
 */
export function pack(path: string, name: string | undefined, skipped: (path: string) => void): Readable {
  const archive = newArchive();
  const readable = archive as unknown as Readable;
  add(archive, path, name ?? ".", skipped).then(
    () => archive.finalize(),
    (error: unknown) => readable.destroy(error as Error),
  );
  return readable;
}

async function add(archive: Pack, path: string, name: string, skipped: (path: string) => void): Promise<void> {
  const found = await lstat(path);
  const { mode, uid, gid, mtime } = found;
  const common = { name, mode: mode & MODES, uid, gid, mtime };
  if (found.isSymbolicLink()) return header(archive, { ...common, type: "symlink", linkname: await readlink(path) });
  if (found.isFile()) return file(archive, path, { ...common, type: "file", size: found.size });
  if (!found.isDirectory()) return skipped(path);
  await header(archive, { ...common, name: `${name}/`, type: "directory" });
  for await (const { name: child } of await opendir(path))
    await add(archive, join(path, child), `${name}/${child}`, skipped);
}

function header(archive: Pack, headers: Partial<Header> & { name: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    archive.entry(headers, "", (error) => (error ? reject(error) : resolve()));
  });
}

async function file(
  archive: Pack,
  path: string,
  headers: Partial<Header> & { name: string; size: number },
): Promise<void> {
  if (headers.size === 0) return header(archive, headers);
  const entry = archive.entry(headers);
  // A file that grows is copied as large as it was.
  const content = createReadStream(path, { end: headers.size - 1 });
  await pipeline(content, entry as unknown as NodeJS.WritableStream).catch((error: unknown) => {
    throw content.bytesRead < headers.size && content.readableEnded ? smaller(path) : error;
  });
}

function smaller(path: string): CliError {
  return new CliError(
    "aborted",
    `${path} became smaller while it was copied. Copy it again when nothing writes to it.`,
  );
}
