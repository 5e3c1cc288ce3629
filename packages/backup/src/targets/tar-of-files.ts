/** A tar archive of files that were stored without one, so that all of a set is extracted in one way. */
import type { StoredFile } from "./manifest.ts";

const BLOCK_BYTES = 512;
/** What the field of a size has room for in octal digits. Larger ones are binary, as GNU tar writes them. */
const MOST_OCTAL = 8 ** 11;

/** Yields the archive. `read` yields the content of one file, and throws at its end unless that is whole. */
export async function* tarOfFiles(
  files: readonly StoredFile[],
  read: (file: StoredFile) => AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void> {
  for (const file of files) {
    yield tarHeader(file);
    yield* read(file);
    yield Buffer.alloc((BLOCK_BYTES - (file.bytes % BLOCK_BYTES)) % BLOCK_BYTES);
  }
  yield Buffer.alloc(2 * BLOCK_BYTES);
}

/** The header of a plain file in the format of GNU tar. Pure. */
export function tarHeader({ path, bytes, mode, mtime }: Pick<StoredFile, "path" | "bytes" | "mode" | "mtime">): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  header.write(path, 0, 100, "utf8");
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  if (bytes < MOST_OCTAL) header.write(octal(bytes, 11), 124);
  else {
    header[124] = 0x80;
    header.writeBigUInt64BE(BigInt(bytes), 128);
  }
  header.write(octal(mtime, 11), 136);
  header.write("        ", 148); // the checksum counts as blanks in its own sum
  header.write("0", 156);
  header.write("ustar  ", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, 148);
  return header;
}
