/** Reads layers: compressed or not, and no more of them than they may have. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { Bytes } from "./bytes.ts";
import { damaged, Refusal } from "./refusal.ts";
import { nextEntry, padded, type TarEntry } from "./tar-read.ts";

/** What all layers of an image may have together. */
export interface Limits {
  bytes: number;
  entries: number;
}

export interface LayerFile {
  path: string;
  /** Of what is in it, uncompressed: hex. */
  diffId: string;
}

/** A head with more than this counts as several: long names and attributes take memory. */
const HEAD_BYTES = 1536;

/** Counts what the layers of an image have. */
export class Budget {
  readonly #limits: Limits;
  #bytes = 0;
  #entries = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  addBytes(count: number): void {
    this.#bytes += count;
    if (this.#bytes > this.#limits.bytes) throw new Refusal("bytes", String(this.#limits.bytes));
  }

  addEntry({ headBytes }: TarEntry): void {
    this.#entries += Math.ceil(headBytes / HEAD_BYTES);
    if (this.#entries > this.#limits.entries) throw new Refusal("entries", String(this.#limits.entries));
  }
}

/** Reads all heads of a layer, counts it, and checks its content. */
export async function readHeads({ path, diffId }: LayerFile, budget: Budget): Promise<TarEntry[]> {
  const hash = createHash("sha256");
  async function* counted(): AsyncIterable<Buffer> {
    for await (const chunk of unpacked(path)) {
      budget.addBytes(chunk.length);
      hash.update(chunk);
      yield chunk;
    }
  }
  const bytes = new Bytes(counted());
  const entries: TarEntry[] = [];
  for (let entry = await nextEntry(bytes); entry !== undefined; entry = await nextEntry(bytes)) {
    budget.addEntry(entry);
    entries.push(entry);
    await bytes.each(entry.size, () => {});
    await bytes.skip(padding(entry));
  }
  // After the end of the archive, there are zeros; the digest is of them, too.
  while ((await bytes.some(Number.MAX_SAFE_INTEGER)).length > 0);
  if (hash.digest("hex") !== diffId) throw damaged("the content of a layer does not match its digest");
  return entries;
}

/** Reads a layer again, and gives each entry to `take`, which reads `entry.size` bytes or nothing. */
export async function eachEntry(
  { path }: LayerFile,
  take: (entry: TarEntry, index: number, bytes: Bytes) => Promise<boolean>,
): Promise<void> {
  const bytes = new Bytes(unpacked(path));
  let index = 0;
  for (let entry = await nextEntry(bytes); entry !== undefined; entry = await nextEntry(bytes)) {
    const taken = (await take(entry, index, bytes)) ? entry.size : 0;
    await bytes.each(entry.size - taken, () => {});
    await bytes.skip(padding(entry));
    index += 1;
  }
}

/** What fills the last block of a file. umoci leaves it out at the end of a layer. */
function padding({ size }: TarEntry): number {
  return padded(size) - size;
}

async function* unpacked(path: string): AsyncIterable<Buffer> {
  const source = createReadStream(path, { highWaterMark: 256 * 1024 });
  const unpacker = await unpackerFor(path);
  if (unpacker === undefined) {
    yield* source as AsyncIterable<Buffer>;
    return;
  }
  // The error, if there is one, comes out of the loop.
  pipeline(source, unpacker, () => {});
  try {
    yield* unpacker as AsyncIterable<Buffer>;
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code?.startsWith("Z") === true
      ? damaged(`a layer cannot be decompressed: ${(error as Error).message}`)
      : error;
  }
}

/** By the first bytes: what the manifest says about compression may be wrong. */
async function unpackerFor(path: string) {
  await using file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
  const options = { chunkSize: 256 * 1024 };
  if (buffer.readUInt16BE(0) === 0x1f8b) return createGunzip(options);
  // Frames, or those that can be skipped, which may come first.
  const magic = buffer.readUInt32LE(0);
  if (magic === 0xfd2fb528 || (magic & 0xfffffff0) >>> 0 === 0x184d2a50) return createZstdDecompress(options);
  return undefined;
}
