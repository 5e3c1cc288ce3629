/** Adds entries to a tar archive. */
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { Header, Pack } from "tar-stream";

type Named = Partial<Header> & { name: string };

/** Adds an entry, and its content if it has some. */
export function addEntry(archive: Pack, header: Named, content: string | Buffer = ""): Promise<void> {
  return new Promise((resolve, reject) => {
    archive.entry(header, content, (error) => (error ? reject(error) : resolve()));
  });
}

/** Adds a file of this computer, as large as the header says. Rejects with `smaller` if there is less of it by now. */
export async function addFile(
  archive: Pack,
  path: string,
  header: Named & { size: number },
  smaller: () => Error,
): Promise<void> {
  if (header.size === 0) return addEntry(archive, header);
  const entry = archive.entry(header);
  const content = createReadStream(path, { end: header.size - 1 });
  await pipeline(content, entry as unknown as NodeJS.WritableStream).catch((error: unknown) => {
    throw content.bytesRead < header.size && content.readableEnded ? smaller() : error;
  });
}
