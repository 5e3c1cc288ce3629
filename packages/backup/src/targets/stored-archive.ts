/** Reads pieces of sets, in whichever form they are stored, as tar archives. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { StoredPiece } from "./manifest.ts";
import { compared, type Repository } from "./repository.ts";
import { tarOfFiles } from "./tar-of-files.ts";

/** The name of the file that the archive of a piece is stored as. */
export function fileOf({ name }: Pick<StoredPiece, "name">): string {
  return `${name}.tar`;
}

/** Yields a piece as a tar archive, and throws at its end, or before, unless it is what was stored. */
export function archiveOf(
  repository: Pick<Repository, "read">,
  piece: StoredPiece,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  const { snapshot, bytes, sha256, files } = piece;
  if (files !== undefined)
    return tarOfFiles(files, ({ at, bytes: length }) => whole(repository.read(snapshot, at, signal), at, length));
  const file = fileOf(piece);
  return compared(repository.read(snapshot, `/${file}`, signal), { file, bytes, sha256: sha256 ?? "" });
}

/** Whether a snapshot that has this as its first path may be that of a piece. */
export function isIn(piece: Pick<StoredPiece, "name" | "files">, file: string): boolean {
  return piece.files === undefined ? file === fileOf(piece) : piece.files.some(({ at }) => at === `/${file}`);
}

/** restic compares each part of a file with its SHA-256 when it reads it. What is left to see is that no part is missing. */
async function* whole(source: AsyncIterable<Buffer>, file: string, bytes: number): AsyncGenerator<Buffer, void> {
  let read = 0;
  for await (const chunk of source) {
    read += chunk.length;
    if (read > bytes) break;
    yield chunk;
  }
  if (read === bytes) return;
  const message = `${file} of the backup is damaged: it has ${read} bytes in place of ${bytes}. Use another backup.`;
  throw new HibernautError("failed_precondition", message);
}
