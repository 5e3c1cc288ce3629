/** The files of an image on this disk: in a directory or in a tar file, read from any byte on. */
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { CliError } from "../failure.ts";
import { indexTar } from "./tar-index.ts";

/** Files by name, as the formats of images name them: `index.json`, `blobs/sha256/...`. */
export interface ImageFiles {
  /** Whether there is such a file. */
  has(name: string): Promise<boolean>;
  /** Bytes. Rejects with a CliError when there is no such file. */
  size(name: string): Promise<number>;
  /** Reads a small file. Rejects with a CliError when there is no such file, or it is too large to be a small one. */
  bytes(name: string): Promise<Buffer>;
  /** Reads a file from that byte on. */
  read(name: string, offset: number): AsyncIterable<Uint8Array>;
}

/** Manifests and configurations. The platform takes no larger ones. */
const MAX_SMALL_BYTES = 8 * 1024 * 1024;

/** The files below a directory. */
export function directoryFiles(folder: string): ImageFiles {
  const path = (name: string) => join(folder, name);
  const size = async (name: string) => {
    const found = await stat(path(name)).catch(() => undefined);
    if (found === undefined || !found.isFile()) throw missing(folder, name);
    return found.size;
  };
  return {
    size,
    has: (name) =>
      size(name).then(
        () => true,
        () => false,
      ),
    async bytes(name) {
      requireSmall(folder, name, await size(name));
      return readFile(path(name));
    },
    read: (name, offset) => createReadStream(path(name), { start: offset }),
  };
}

/** The files in an uncompressed tar file, which is read once from head to head. */
export async function tarFiles(file: string): Promise<ImageFiles> {
  const index = await indexTar(file);
  const find = (name: string) => {
    const found = index.get(name);
    if (found === undefined) throw missing(file, name);
    return found;
  };
  async function* read(name: string, offset: number): AsyncGenerator<Uint8Array, void> {
    const { start, size } = find(name);
    if (offset < size) yield* createReadStream(file, { start: start + offset, end: start + size - 1 });
  }
  return {
    read,
    has: async (name) => index.has(name),
    size: async (name) => find(name).size,
    async bytes(name) {
      requireSmall(file, name, find(name).size);
      return Buffer.concat(await Array.fromAsync(read(name, 0)));
    },
  };
}

function requireSmall(where: string, name: string, size: number): void {
  if (size <= MAX_SMALL_BYTES) return;
  throw new CliError("invalid_argument", `${name} in ${where} has ${size} bytes, and is not part of an image.`);
}

function missing(where: string, name: string): CliError {
  const message = `There is no ${name} in ${where}. Check that the image is complete and of the kind that its prefix says (docker-archive: for docker save, oci-archive: and oci: for OCI layouts), or create it again.`;
  return new CliError("invalid_argument", message);
}
