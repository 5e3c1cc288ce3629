/** An archive with one file in it, both ways: contents of files travel as archives, whatever their number. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, pack } from "tar-stream";
import { ApiError } from "./error.ts";

/** The beginning of a file. */
export interface FileBeginning {
  content: Buffer;
  /** Bytes of the whole file. */
  size: number;
}

/** Returns an archive with this file. `mode`: its permissions. */
export function archiveOf(name: string, content: Buffer, mode: number): Readable {
  const archive = pack();
  archive.entry({ name, type: "file", mode, size: content.length, mtime: new Date() }, content);
  archive.finalize();
  return Readable.from(archive);
}

/** Reads the first file of an archive, up to `most` bytes, and ends the archive there. The guest that sends it is not trusted. */
export async function beginningIn(archive: Readable, most: number): Promise<FileBeginning> {
  const parser = extract();
  const read = pipeline(archive, parser as unknown as NodeJS.WritableStream);
  read.catch(() => {}); // The loop below fails as well, or has what it wants.
  try {
    for await (const entry of parser) {
      const { type, size } = entry.header;
      if (type !== "file" && type !== "contiguous-file") throw unreadable(`it has a ${type} in place of a file`);
      const kept: Buffer[] = [];
      let room = most;
      for await (const chunk of entry as unknown as AsyncIterable<Buffer>) {
        kept.push(chunk.subarray(0, room));
        room -= chunk.length;
        if (room <= 0) break;
      }
      return { content: Buffer.concat(kept), size };
    }
    throw unreadable("it is empty");
  } catch (error) {
    await read.catch((cause: unknown) => {
      if (cause instanceof ApiError) throw cause;
    });
    throw error instanceof ApiError ? error : unreadable((error as Error).message);
  } finally {
    archive.destroy();
    parser.destroy();
  }
}

function unreadable(why: string): ApiError {
  const message = `The archive from the machine cannot be read: ${why}. Try again.`;
  return new ApiError({ code: "aborted", message });
}
