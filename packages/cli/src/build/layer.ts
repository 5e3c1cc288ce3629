/** Writes the layers of images as blobs of an OCI layout. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { CliError } from "../failure.ts";
import { TAR_END, type TarEntry, tarHead, tarPadding } from "./tar.ts";

/** An entry, and where the bytes of a file come from: a file of this host, or here. */
export type LayerEntry = TarEntry & { from?: string; content?: Buffer };

/** A layer that is in a layout. */
export interface Layer {
  /** Of the compressed blob: `sha256:` and 64 hex digits. */
  digest: string;
  /** Bytes of the compressed blob. */
  size: number;
  /** Digest of the archive before compression. */
  diffId: string;
}

/** Writes the entries, in their order, as a layer into a directory of blobs. Rejects when the signal is aborted. */
export async function writeLayer(blobs: string, entries: Iterable<LayerEntry>, signal: AbortSignal): Promise<Layer> {
  await mkdir(blobs, { recursive: true });
  const draft = join(blobs, `.draft-${randomUUID()}`);
  const [plain, packed] = [digesting(), digesting()];
  try {
    // Level 1 takes a tenth of the time of the default, and the image is read only once.
    const gzip = createGzip({ level: 1 });
    const source = Readable.from(archive(entries), { objectMode: false });
    await pipeline(source, plain.stream, gzip, packed.stream, createWriteStream(draft), { signal });
    const { digest, size } = packed.result();
    await rename(draft, join(blobs, digest.slice("sha256:".length)));
    return { digest, size, diffId: plain.result().digest };
  } catch (error) {
    // Streams that are aborted hide the reason.
    signal.throwIfAborted();
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function* archive(entries: Iterable<LayerEntry>): AsyncGenerator<Buffer> {
  for (const entry of entries) {
    yield tarHead(entry);
    if (entry.kind !== "file" || entry.size === 0) continue;
    if (entry.content !== undefined) yield entry.content;
    else if (entry.from !== undefined) yield* bytesOf(entry.from, entry.size);
    yield tarPadding(entry.size);
  }
  yield TAR_END;
}

/** Exactly the bytes that the head announced: another number would move everything after it. */
async function* bytesOf(file: string, size: number): AsyncGenerator<Buffer> {
  let read = 0;
  for await (const chunk of createReadStream(file, { end: size - 1 }) as AsyncIterable<Buffer>) {
    read += chunk.length;
    yield chunk;
  }
  if (read !== size)
    throw new CliError(
      "build_failed",
      `${file} became shorter while it was packed. Wait until it is complete, and deploy again.`,
    );
}

function digesting() {
  const hash = createHash("sha256");
  let size = 0;
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      size += chunk.length;
      done(null, chunk);
    },
  });
  return { stream, result: () => ({ digest: `sha256:${hash.digest("hex")}`, size }) };
}
