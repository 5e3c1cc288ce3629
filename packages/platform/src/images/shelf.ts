/** Images on the disk: `<dataDir>/images/<64 hex digits>/{rootfs.squashfs,image.json}`, each whole or not there. */
import { mkdtemp, readdir, readFile, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { flush } from "../lib/durable.ts";
import type { Image, ImageConfig } from "./contract.ts";
import { removeTree } from "./files.ts";
import { ROOTFS_FILE, rootfsSize } from "./import.ts";

/** What `image.json` holds; `format` goes up when the folder's content changes, older ones are built again. */
interface ImageRecord {
  format: number;
  digest: string;
  config: ImageConfig;
  sizeBytes: number;
  /** The reference that brought it, and when (RFC 3339); absent in images of version 0.1. */
  ref?: string;
  importedAt?: string;
}

const FORMAT = 1;
const RECORD_FILE = "image.json";
const TEMPORARY = "tmp-";
/** The name of an image's folder. */
const HEX = /^[0-9a-f]{64}$/;

/** Folders being filled or emptied by this process, by absolute path: never collected. */
const active = new Set<string>();

/** The folder of images. One per data folder. */
export class Shelf {
  readonly #folder: string;
  /** Temporary folders older than this were left by a process that died. */
  readonly #openedAt = Date.now();

  constructor(folder: string) {
    this.#folder = resolve(folder);
  }

  /** Digests of what looks like an image. */
  async digests(): Promise<string[]> {
    return (await readdir(this.#folder)).filter((name) => HEX.test(name)).map((name) => `sha256:${name}`);
  }

  /** The image, or undefined. */
  async get(digest: string): Promise<Image | undefined> {
    const record = await this.record(digest);
    return record && this.#imageOf(record);
  }

  /** What is known of a whole image; undefined when it is not there, or not as it should be. */
  async record(digest: string): Promise<ImageRecord | undefined> {
    if (!/^sha256:[0-9a-f]{64}$/.test(digest)) return undefined;
    const folder = this.#folderOf(digest);
    try {
      const record = JSON.parse(await readFile(join(folder, RECORD_FILE), "utf8")) as ImageRecord | null;
      if (record?.format !== FORMAT || record.digest !== digest) return undefined;
      // A file that was cut short would fail in the guest, far from the cause: build it again.
      return (await rootfsSize(folder)) === record.sizeBytes ? record : undefined;
    } catch (error) {
      if (error instanceof SyntaxError || isMissing(error)) return undefined;
      throw error;
    }
  }

  /** Makes a finished folder the image, whole or not at all whenever the power goes. */
  async publish(folder: string, about: Omit<ImageRecord, "format" | "sizeBytes">): Promise<Image> {
    const record: ImageRecord = { format: FORMAT, ...about, sizeBytes: await rootfsSize(folder) };
    await writeFile(join(folder, RECORD_FILE), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o644, flush: true });
    await flush(folder);
    const published = await this.get(record.digest);
    if (published) return published;
    // What is there now did not pass `get`: it is damaged or of an older format.
    await this.discard(record.digest);
    await rename(folder, this.#folderOf(record.digest));
    await flush(this.#folder);
    return this.#imageOf(record);
  }

  /** Deletes an image; renamed first, so that a half deleted one never looks like an image. */
  async discard(digest: string): Promise<void> {
    await this.inTemporary(async (folder) => {
      await rename(this.#folderOf(digest), join(folder, "discarded")).catch((error) => {
        if (!isMissing(error)) throw error;
      });
    });
  }

  /** Notes that an image is used. */
  async touch(digest: string): Promise<void> {
    const now = new Date();
    await utimes(this.#folderOf(digest), now, now).catch((error) => {
      if (!isMissing(error)) throw error;
    });
  }

  /** When it was last noted as used, in milliseconds since 1970; 0 when it is not there. */
  async usedAt(digest: string): Promise<number> {
    return stat(this.#folderOf(digest)).then(
      ({ mtimeMs }) => mtimeMs,
      () => 0,
    );
  }

  /** Runs `work` with a folder of its own, which is gone afterwards. */
  async inTemporary<T>(work: (folder: string) => Promise<T>): Promise<T> {
    const folder = await mkdtemp(join(this.#folder, TEMPORARY));
    active.add(folder);
    try {
      return await work(folder);
    } finally {
      await removeTree(folder).finally(() => active.delete(folder));
    }
  }

  /** Deletes the temporary folders that a process left which died. */
  async collectTemporary(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const folder = join(this.#folder, name);
      if (!name.startsWith(TEMPORARY) || active.has(folder)) continue;
      const born = await stat(folder).then(
        ({ birthtimeMs }) => birthtimeMs,
        () => Number.POSITIVE_INFINITY,
      );
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

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}
