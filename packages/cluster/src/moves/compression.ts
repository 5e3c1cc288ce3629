/** The bytes of a machine between two hosts, compressed as a whole: much of a memory repeats itself. */
import { finished, type Readable } from "node:stream";
import { constants, createZstdCompress, createZstdDecompress, type ZstdCompress } from "node:zlib";

/** The fastest: the connection between two hosts is seldom slower than it. */
const LEVEL = 1;
/** What zstd hands out at a time, in bytes. Each costs a way through Node's threads, and its default is 16 KB. */
const CHUNK_BYTES = 1024 * 1024;

/** Returns a stream that compresses what is written to it. */
export function compression(): ZstdCompress {
  const params = { [constants.ZSTD_c_compressionLevel]: LEVEL };
  return createZstdCompress({ params, chunkSize: CHUNK_BYTES });
}

/** Yields what was compressed. Throws when it breaks off. The stream itself is left open: its sender may have to be answered. */
export async function* decompressed(stream: Readable): AsyncGenerator<Buffer, void> {
  const decompress = createZstdDecompress({ chunkSize: CHUNK_BYTES });
  const forget = finished(stream, { writable: false }, (error) => {
    if (error) decompress.destroy(error);
  });
  stream.pipe(decompress);
  try {
    for await (const piece of decompress as AsyncIterable<Buffer>) yield piece;
  } finally {
    stream.unpipe(decompress);
    forget();
  }
}
