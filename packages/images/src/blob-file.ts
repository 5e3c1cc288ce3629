/** Reads and writes the files of blobs, for downloads and uploads alike. */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { FileHandle } from "node:fs/promises";

/** Writes all bytes: a single write may take only some of them. */
export async function writeAll(handle: FileHandle, chunk: Buffer, position: number): Promise<void> {
  for (let written = 0; written < chunk.length; )
    written += (await handle.write(chunk, written, chunk.length - written, position + written)).bytesWritten;
}

/** Returns the SHA-256 of what is in a file, to which more can be added. */
export async function hashOf(file: string): Promise<Hash> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash;
}
