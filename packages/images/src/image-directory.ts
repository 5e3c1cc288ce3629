/** Images on the disk: `<dataDir>/images/<64 hex digits>/{rootfs.squashfs,image.json}`, each whole or absent. */
import { mkdtemp, readdir, readFile, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ifAbsent, isAbsent } from "@hibernaut/lib/absence";
import { flush } from "@hibernaut/lib/durable";
import type { Image, ImageConfig } from "./contract.ts";
import { removeTree } from "./files.ts";
import { ROOTFS_FILE, rootfsSize } from "./import.ts";

/** The content of `image.json`. `format` increases when the directory's content changes; older images are built again. */
interface ImageRecord {
  format: number;
  digest: string;
  config: ImageConfig;
  sizeBytes: number;
  /** The reference that it was imported by, and when (RFC 3339). Absent in images of version 0.1. */
  ref?: string;
  importedAt?: string;
}

const FORMAT = 1;
const RECORD_FILE = "image.json";
const TEMPORARY = "tmp-";
/** The name of an image's directory. */
const HEX = /^[0-9a-f]{64}$/;

/** Absolute paths of directories that this process is filling or emptying. They are never collected. */
const active = new Set<string>();

/** The directory that all images are in. One per data directory. */
export class ImageDirectory {
  readonly #folder: string;
  /** Temporary directories older than this were left by a process that died. */
  readonly #openedAt = Date.now();

  constructor(folder: string) {
    this.#folder = resolve(folder);
  }

  /** Lists the digests of everything that looks like an image. */
  async digests(): Promise<string[]> {
    return (await readdir(this.#folder)).filter((name) => HEX.test(name)).map((name) => `sha256:${name}`);
  }

  /** Finds an image. Undefined when it does not exist or is damaged. */
  async get(digest: string): Promise<Image | undefined> {
    const record = await this.record(digest);
    return record && this.#imageOf(record);
  }

  /** Reads the record of an image. Undefined when the image does not exist, is damaged or has an older format. */
  async record(digest: string): Promise<ImageRecord | undefined> {
    if (!/^sha256:[0-9a-f]{64}$/.test(digest)) return undefined;
    const folder = this.#folderOf(digest);
    try {
      const record = JSON.parse(await readFile(join(folder, RECORD_FILE), "utf8")) as ImageRecord | null;
      if (record?.format !== FORMAT || record.digest !== digest) return undefined;
      // A truncated file would fail in the guest, far from the cause: treat it as absent, so that it is built again.
      return (await rootfsSize(folder)) === record.sizeBytes ? record : undefined;
    } catch (error) {
      if (error instanceof SyntaxError || isAbsent(error)) return undefined;
      throw error;
    }
  }

  /** Publishes a finished directory as an image. After a power cut the image is whole or absent. */
  async publish(folder: string, about: Omit<ImageRecord, "format" | "sizeBytes">): Promise<Image> {
    const record: ImageRecord = { format: FORMAT, ...about, sizeBytes: await rootfsSize(folder) };
    await writeFile(join(folder, RECORD_FILE), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o644, flush: true });
    await flush(folder);
    const published = await this.get(record.digest);
    if (published) return published;
    // An image that `get` does not return is damaged or has an older format.
    await this.discard(record.digest);
    await rename(folder, this.#folderOf(record.digest));
    await flush(this.#folder);
    return this.#imageOf(record);
  }

  /** Deletes an image. Renames it first, so that a half-deleted one never looks like an image. */
  async discard(digest: string): Promise<void> {
    await this.inTemporary(async (folder) => {
      await rename(this.#folderOf(digest), join(folder, "discarded")).catch(ifAbsent(undefined));
    });
  }

  /** Records that an image was used now. */
  async touch(digest: string): Promise<void> {
    const now = new Date();
    await utimes(this.#folderOf(digest), now, now).catch(ifAbsent(undefined));
  }

  /** Returns when an image was last used, in milliseconds since 1970. 0 when it does not exist. */
  async usedAt(digest: string): Promise<number> {
    return stat(this.#folderOf(digest)).then(({ mtimeMs }) => mtimeMs, ifAbsent(0));
  }

  /** Runs `work` with a new temporary directory, which is deleted afterwards. */
  async inTemporary<T>(work: (folder: string) => Promise<T>): Promise<T> {
    const folder = await mkdtemp(join(this.#folder, TEMPORARY));
    active.add(folder);
    try {
      return await work(folder);
    } finally {
      await removeTree(folder).finally(() => active.delete(folder));
    }
  }

  /** Deletes temporary directories that a process left behind when it died. */
  async collectTemporary(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const folder = join(this.#folder, name);
      if (!name.startsWith(TEMPORARY) || active.has(folder)) continue;
      const born = await stat(folder).then(({ birthtimeMs }) => birthtimeMs, ifAbsent(Number.POSITIVE_INFINITY));
      if (born < this.#openedAt) await removeTree(folder);
    }
  }

  #imageOf({ digest, config, sizeBytes }: ImageRecord): Image {
    return { ref: digest, digest, rootfs: join(this.#folderOf(digest), ROOTFS_FILE), config, sizeBytes };
  }

  #folderOf(digest: string): string {
    return join(this.#folder, digest.slice("sha256:".length));
  }
}
