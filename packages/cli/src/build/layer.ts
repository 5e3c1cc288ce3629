/** Writes the layers of images as blobs of an OCI layout. */
import { createHash, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { addEntry, addFile } from "@hibernaut/client/copy";
import { type Pack, pack } from "tar-stream";
import { CliError } from "../failure.ts";

/** One file, directory or symbolic link of a layer. */
export interface LayerEntry {
  kind: "file" | "directory" | "link";
  /** Without a slash at the beginning or the end. */
  path: string;
  /** Permissions, such as 0o644. */
  mode: number;
  /** User and group. */
  owner: number;
  /** Bytes of a file; 0 for anything else. */
  size: number;
  /** Where a link leads. */
  target?: string;
  /** Seconds since 1970; default: 0, so that the time of a build changes nothing. */
  time?: number;
  /** Where the bytes of a file come from: a file of this host, or here. */
  from?: string;
  content?: Buffer;
}

const TYPES = { file: "file", directory: "directory", link: "symlink" } as const;

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
  const tar = pack();
  const filled = fill(tar, entries).then(() => tar.finalize());
  filled.catch((error: unknown) => (tar as unknown as Readable).destroy(error as Error));
  try {
    yield* tar as AsyncIterable<Buffer>;
  } catch (error) {
    // What went wrong with an entry says more than what the archive makes of it.
    await filled;
    throw error;
  }
}

/** The same entries give the same bytes. */
async function fill(tar: Pack, entries: Iterable<LayerEntry>): Promise<void> {
  for (const { kind, path, mode, owner, size, target, time = 0, from, content } of entries) {
    const name = kind === "directory" ? `${path}/` : path;
    const common = { name, type: TYPES[kind], mode, uid: owner, gid: owner, mtime: new Date(time * 1000) };
    const header = { ...common, ...(target !== undefined && { linkname: target }) };
    if (from === undefined) await addEntry(tar, header, content);
    else await addFile(tar, from, { ...header, size }, () => shorter(from));
  }
}

function shorter(file: string): CliError {
  const message = `${file} became shorter while it was packed. Wait until it is complete, and deploy again.`;
  return new CliError("build_failed", message);
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
