/** The cache of imported images: `<dataDir>/images/<64 hex digits>/{rootfs.squashfs,image.json}`. */
import { mkdir, mkdtemp, readdir, readFile, rename, stat, utimes } from "node:fs/promises";
import { join, resolve } from "node:path";
import type {
  CollectOptions,
  EnsureOptions,
  HeldImage,
  Image,
  ImageConfig,
  ImageProgress,
  ImageStore,
  StoredImage,
} from "./contract.ts";
import { explain } from "./failures.ts";
import { flush, removeTree, writeFlushed } from "./files.ts";
import { Holds } from "./holds.ts";
import {
  buildImage,
  type ImageTools,
  type Import,
  type Registries,
  ROOTFS_FILE,
  resolveImage,
  rootfsSize,
} from "./import.ts";
import type { LayerCache } from "./layers.ts";
import { formatReference, parseReference, type Reference } from "./reference.ts";
import { type Job, SharedJobs } from "./shared.ts";
import { checkSource, contentStamp } from "./source.ts";

/** What `image.json` holds; `format` goes up when the folder's content changes, older ones are built again. */
interface Record {
  format: number;
  digest: string;
  config: ImageConfig;
  sizeBytes: number;
  /** The reference that brought it, and when; absent in images of version 0.1. */
  ref?: string;
  importedAt?: string;
}

/** What the store works with. */
export interface StoreParts {
  tools: ImageTools;
  registries: Registries;
  layers: LayerCache;
}

/** What a reference stood for when it was looked up. */
interface Found {
  digest: string;
  stamp: string;
}

const FORMAT = 1;
const RECORD_FILE = "image.json";
const TEMPORARY = "tmp-";
/** The name of an image's folder. */
const HEX = /^[0-9a-f]{64}$/;

/** Folders being filled or emptied by this process, by absolute path: never collected. */
const active = new Set<string>();

/** The image store on a local disk. One per data folder: the platform holds the folder's lock. */
export class DiskImageStore implements ImageStore {
  readonly #folder: string;
  readonly #parts: StoreParts;
  /** Temporary folders older than this were left by a process that died. */
  readonly #openedAt = Date.now();
  readonly #resolving = new SharedJobs<Found, ImageProgress>();
  readonly #building = new SharedJobs<Image, ImageProgress>();
  /** Images that somebody is about to use: not collected. */
  readonly #holds = new Holds();

  constructor(folder: string, parts: StoreParts) {
    this.#folder = resolve(folder);
    this.#parts = parts;
  }

  async ensure(ref: string, options: EnsureOptions = {}): Promise<Image> {
    const { [Symbol.dispose]: release, ...image } = await this.hold(ref, options);
    release();
    return image;
  }

  async hold(ref: string, options: EnsureOptions = {}): Promise<HeldImage> {
    const parsed = parseReference(ref);
    try {
      const reference = await checkSource(parsed);
      // A digest says all: no need to ask the registry, which may be gone.
      const pinned = reference.kind === "registry" && reference.digest ? await this.#held(reference.digest) : undefined;
      if (pinned) return { ...pinned, ref };
      const key = formatReference(reference);
      const found = await this.#resolving.join(key, (job) => this.#resolve(ref, reference, job), options);
      const held = await this.#held(found.digest, () =>
        this.#building.join(found.digest, (job) => this.#build(ref, reference, found, job), options),
      );
      if (held === undefined) throw new Error("a build gave no image");
      return { ...held, ref };
    } catch (error) {
      throw explain(error, ref, parsed);
    }
  }

  async get(digest: string): Promise<Image | undefined> {
    const record = await this.#record(digest);
    if (record === undefined) return undefined;
    const { config, sizeBytes } = record;
    return { ref: digest, digest, rootfs: join(this.#folderOf(digest), ROOTFS_FILE), config, sizeBytes };
  }

  /** What is known of a whole image; undefined when it is not there, or not as it should be. */
  async #record(digest: string): Promise<Record | undefined> {
    if (!/^sha256:[0-9a-f]{64}$/.test(digest)) return undefined;
    const folder = this.#folderOf(digest);
    try {
      const record = JSON.parse(await readFile(join(folder, RECORD_FILE), "utf8")) as Record | null;
      if (record?.format !== FORMAT || record.digest !== digest) return undefined;
      // A file that was cut short would fail in the guest, far from the cause: build it again.
      return (await rootfsSize(folder)) === record.sizeBytes ? record : undefined;
    } catch (error) {
      if (error instanceof SyntaxError || isMissing(error)) return undefined;
      throw error;
    }
  }

  async list(): Promise<StoredImage[]> {
    const images: StoredImage[] = [];
    for (const name of await readdir(this.#folder)) {
      if (!HEX.test(name)) continue;
      const digest = `sha256:${name}`;
      const record = await this.#record(digest);
      if (record === undefined) continue;
      const { sizeBytes, ref, importedAt } = record;
      const birth = importedAt ?? (await stat(join(this.#folder, name, ROOTFS_FILE))).mtime.toISOString();
      images.push({ digest, ref, sizeBytes, importedAt: birth });
    }
    return images.sort((a, b) => (a.importedAt < b.importedAt ? 1 : -1));
  }

  async collect(inUse: () => ReadonlySet<string>, { unusedForMs = 0 }: CollectOptions = {}): Promise<string[]> {
    const deleted: string[] = [];
    for (const name of await readdir(this.#folder)) {
      const digest = `sha256:${name}`;
      if (name.startsWith(TEMPORARY)) await this.#collectTemporary(join(this.#folder, name));
      else if (HEX.test(name) && (await this.#collectImage(digest, inUse, unusedForMs))) deleted.push(digest);
    }
    return deleted;
  }

  async dropLayers(): Promise<number> {
    return this.#parts.layers.trim(0);
  }

  /** Deletes the image unless it is, was lately, or is about to be used. */
  async #collectImage(digest: string, inUse: () => ReadonlySet<string>, unusedForMs: number): Promise<boolean> {
    const folder = this.#folderOf(digest);
    if (inUse().has(digest)) {
      await touch(folder);
      return false;
    }
    const { mtimeMs } = await stat(folder).catch(() => ({ mtimeMs: 0 }));
    if (Date.now() - mtimeMs < unusedForMs) return false;
    // Asked again, with nothing awaited until the deletion is announced: nobody can come in between.
    if (inUse().has(digest)) return false;
    return this.#holds.remove(digest, () => this.#discard(folder));
  }

  /** The image, held, from the cache or from `make`; undefined when it is not there and nobody makes it. */
  async #held(digest: string, make?: () => Promise<Image>): Promise<HeldImage | undefined> {
    const release = await this.#holds.take(digest);
    try {
      const image = (await this.get(digest)) ?? (await make?.());
      if (image === undefined) release();
      else await touch(this.#folderOf(digest));
      return image && { ...image, [Symbol.dispose]: release };
    } catch (error) {
      release();
      throw error;
    }
  }

  #folderOf(digest: string): string {
    return join(this.#folder, digest.slice("sha256:".length));
  }

  async #resolve(ref: string, reference: Reference, job: Job<ImageProgress>): Promise<Found> {
    const stamp = await contentStamp(reference);
    const { tools, registries } = this.#parts;
    const work = (folder: string) => resolveImage({ ref, reference, folder, tools, registries, job });
    return { digest: await this.#inTemporary(work), stamp };
  }

  #build(ref: string, reference: Reference, found: Found, job: Job<ImageProgress>): Promise<Image> {
    return this.#inTemporary(async (folder) => {
      const { tools, registries, layers } = this.#parts;
      const work: Import = { ref, reference, folder, tools, registries, job };
      const { digest, stamp } = found;
      // Another build may have ended between the look into the cache and the start of this one.
      const cached = await this.get(digest);
      if (cached) return cached;
      const config = await buildImage(work, digest, stamp);
      const importedAt = new Date().toISOString();
      const sizeBytes = await rootfsSize(folder);
      const image = await this.#publish(folder, { format: FORMAT, digest, config, sizeBytes, ref, importedAt });
      await layers.trim();
      return image;
    });
  }

  /** Makes a finished folder the image, whole or not at all whenever the power goes. */
  async #publish(folder: string, record: Record): Promise<Image> {
    const target = join(this.#folder, record.digest.slice("sha256:".length));
    await writeFlushed(join(folder, RECORD_FILE), `${JSON.stringify(record, null, 2)}\n`);
    await flush(folder);
    const published = await this.get(record.digest);
    if (published) return published;
    // What is there now did not pass `get`: it is damaged or of an older format.
    await this.#discard(target);
    await rename(folder, target);
    await flush(this.#folder);
    const { digest, config, sizeBytes } = record;
    return { ref: digest, digest, rootfs: join(target, ROOTFS_FILE), config, sizeBytes };
  }

  /** Deletes a published image; renamed first, so that a half deleted one never looks like an image. */
  async #discard(target: string): Promise<void> {
    await this.#inTemporary(async (folder) => {
      await rename(target, join(folder, "discarded")).catch((error) => {
        if (!isMissing(error)) throw error;
      });
    });
  }

  async #collectTemporary(folder: string): Promise<void> {
    if (active.has(folder)) return;
    const born = await stat(folder).then(
      ({ birthtimeMs }) => birthtimeMs,
      () => Number.POSITIVE_INFINITY,
    );
    if (born < this.#openedAt) await removeTree(folder);
  }

  async #inTemporary<T>(work: (folder: string) => Promise<T>): Promise<T> {
    const folder = await mkdtemp(join(this.#folder, TEMPORARY));
    active.add(folder);
    try {
      return await work(folder);
    } finally {
      await removeTree(folder).finally(() => active.delete(folder));
    }
  }
}

/** Opens the store in `folder`, which is made if it is not there. */
export async function openStore(folder: string, parts: StoreParts): Promise<ImageStore> {
  // The data folder above is private to the platform's user.
  await mkdir(folder, { recursive: true, mode: 0o755 });
  return new DiskImageStore(folder, parts);
}

/** Notes that an image is used: its folder's time says since when it is not. */
async function touch(folder: string): Promise<void> {
  const now = new Date();
  await utimes(folder, now, now).catch((error) => {
    if (!isMissing(error)) throw error;
  });
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}
