/**
 * Large files that restic reads by itself, where they are: no byte of them passes through the platform, and restic does not even
 * read a file again that nobody has written to since the latest backup.
 */
import type { Stats } from "node:fs";
import { lstat, readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { allocatedBytes } from "@hibernaut/lib/disk-files";
import { FilesChanged } from "../archive.ts";
import type { Piece, PieceKind } from "../piece.ts";
import type { StoredFile } from "./manifest.ts";

/** One more start of restic takes as long as an archive of this size, in bytes. */
const LEAST_BYTES = 128 * 1024 ** 2;
/** restic stores no holes, and what it restores has none. A file with more of them than this part stays in an archive, which has. */
const MOST_HOLES = 0.25;
/** The longest path that a tar archive has room for in its plain form, in bytes. */
const MOST_PATH_BYTES = 100;
/** What never changes is sent once, and compared with what was sent. */
const KINDS: ReadonlySet<PieceKind> = new Set(["machine", "volume"]);

/** A file, and what it looked like before it was read. */
export interface FileInPlace extends StoredFile {
  look: string;
}

type Files = Pick<Piece, "kind" | "folder" | "paths" | "lent">;

/** Whether restic reads a file by itself. Pure. */
export function isReadInPlace(path: string, { size, blocks }: Pick<Stats, "size" | "blocks">): boolean {
  if (size < LEAST_BYTES || Buffer.byteLength(path) > MOST_PATH_BYTES) return false;
  return allocatedBytes({ blocks }) >= size * (1 - MOST_HOLES);
}

/** Returns the files of a piece that restic reads by itself. Rejects with {@link FilesChanged} when one that is lent has gone. */
export async function filesInPlace({ kind, folder, paths, lent }: Files): Promise<FileInPlace[]> {
  if (!KINDS.has(kind)) return [];
  try {
    return (await Promise.all(paths.map((path) => below(folder, path)))).flat();
  } catch (error) {
    throw lent === undefined ? error : new FilesChanged(String(error));
  }
}

/** Rejects with {@link FilesChanged} unless the files still look as they did before they were read. */
export async function requireUnchanged(files: readonly FileInPlace[]): Promise<void> {
  for (const { at, path, look } of files) {
    const now = await stat(at, { bigint: true }).then(lookOf, () => "gone");
    if (now !== look) throw new FilesChanged(`${path}: file changed as restic read it`);
  }
}

async function below(folder: string, path: string): Promise<FileInPlace[]> {
  const shown = join(folder, path);
  if ((await lstat(shown)).isDirectory()) {
    const names = await readdir(shown);
    return (await Promise.all(names.map((name) => below(folder, join(path, name))))).flat();
  }
  // What is lent is there by a symbolic link, which restic would store as one.
  const at = await realpath(shown);
  const seen = await stat(at, { bigint: true });
  const [size, blocks] = [Number(seen.size), Number(seen.blocks)];
  if (!isReadInPlace(path, { size, blocks })) return [];
  const mode = Number(seen.mode) & 0o777;
  return [{ path, at, bytes: size, mode, mtime: Number(seen.mtimeMs / 1000n), look: lookOf(seen) }];
}

/** A write changes at least one of these. */
function lookOf({ dev, ino, size, mtimeNs, ctimeNs }: Awaited<ReturnType<typeof bigStat>>): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
}

const bigStat = (path: string) => stat(path, { bigint: true });
