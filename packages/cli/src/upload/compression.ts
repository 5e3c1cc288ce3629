/** Compressed layers and archives: which ones are, and what they contain. */
import { createReadStream, createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { CliError } from "../failure.ts";

export type Compression = "none" | "gzip" | "zstd";

/** The first bytes of formats. Those without a `kind` are not supported. */
const MAGIC: { bytes: number[]; kind?: Compression; name: string; tool?: string }[] = [
  { bytes: [0x1f, 0x8b], kind: "gzip", name: "gzip" },
  { bytes: [0x28, 0xb5, 0x2f, 0xfd], kind: "zstd", name: "zstd" },
  { bytes: [0xfd, 0x37, 0x7a, 0x58, 0x5a], name: "xz", tool: "unxz" },
  { bytes: [0x42, 0x5a, 0x68], name: "bzip2", tool: "bunzip2" },
];

/** Returns how a file that begins with these bytes is compressed. Throws a CliError for a compression that is not supported. */
export function compressionOf(head: Uint8Array, what: string): Compression {
  const found = MAGIC.find(({ bytes }) => bytes.every((byte, index) => head[index] === byte));
  if (found === undefined) return "none";
  if (found.kind !== undefined) return found.kind;
  throw new CliError("invalid_argument", `${what} is compressed with ${found.name}. Unpack it first (${found.tool}).`);
}

export async function compressionOfFile(file: string): Promise<Compression> {
  await using handle = await open(file);
  const head = Buffer.alloc(8);
  const { bytesRead } = await handle.read(head, 0, head.length, 0);
  return compressionOf(head.subarray(0, bytesRead), file);
}

/** Yields what compressed bytes contain, without the first `skip` bytes of it. */
export async function* expand(
  compressed: AsyncIterable<Uint8Array>,
  kind: Exclude<Compression, "none">,
  skip = 0,
): AsyncGenerator<Uint8Array, void> {
  const expander = expanderOf(kind);
  const source = Readable.from(compressed, { objectMode: false });
  const failed = pipeline(source, expander).catch((error: unknown) => void expander.destroy(error as Error));
  let left = skip;
  try {
    for await (const chunk of expander as AsyncIterable<Buffer>) {
      if (left < chunk.length) yield chunk.subarray(left);
      left = Math.max(0, left - chunk.length);
    }
  } finally {
    source.destroy();
    await failed;
  }
}

/** Writes what a compressed file contains to another file. */
export async function expandFile(
  file: string,
  kind: Exclude<Compression, "none">,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  await pipeline(createReadStream(file), expanderOf(kind), createWriteStream(to, { mode: 0o600 }), { signal });
}

function expanderOf(kind: Exclude<Compression, "none">) {
  return kind === "gzip" ? createGunzip() : createZstdDecompress();
}
