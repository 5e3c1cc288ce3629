/** The cache of imported images: `<dataDir>/images/<64 hex digits>/{rootfs.squashfs,image.json}`. */
import { mkdir, mkdtemp, readdir, readFile, rename, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Image, ImageConfig, ImageProgress, ImageStore } from "./contract.ts";
import { explain } from "./failures.ts";
import { flush, removeTree, writeFlushed } from "./files.ts";
import { buildImage, type ImageTools, type Import, ROOTFS_FILE, resolveImage, rootfsSize } from "./import.ts";
import { formatReference, parseReference, type Reference } from "./reference.ts";
import { type Job, SharedJobs } from "./shared.ts";
import { checkSource, contentStamp } from "./source.ts";

/** What `image.json` holds; `format` goes up when the folder's content changes, older ones are built again. */
interface Record {
  format: number;
  digest: string;
  config: ImageConfig;
  sizeBytes: number;
}

/** What a reference stood for when it was looked up. */
interface Found {
  digest: string;
  stamp: string;
}

const FORMAT = 1;
const RECORD_FILE = "image.json";
const TEMPORARY = "tmp-";

/** Folders being filled or emptied by this process, by absolute path: never collected. */
const active = new Set<string>();

/** The image store on a local disk. One per data folder: the platform holds the folder's lock. */
export class DiskImageStore implements ImageStore {
  readonly #folder: string;
  readonly #tools: ImageTools;
  /** Temporary folders older than this were left by a process that died. */
  readonly #openedAt = Date.now();
  readonly #resolving = new SharedJobs<Found, ImageProgress>();
  readonly #building = new SharedJobs<Image, ImageProgress>();

  constructor(folder: string, tools: ImageTools) {
    this.#folder = resolve(folder);
    this.#tools = tools;
  }

  async ensure(ref: string, options: Parameters<ImageStore["ensure"]>[1] = {}): Promise<Image> {
    const parsed = parseReference(ref);
    try {
      const reference = await checkSource(parsed);
      // A digest says all: no need to ask the registry, which may be gone.
      const pinned = reference.kind === "registry" && reference.digest ? await this.get(reference.digest) : undefined;
      if (pinned) return { ...pinned, ref };
      const key = formatReference(reference);
      const found = await this.#resolving.join(key, (job) => this.#resolve(ref, reference, job), options);
      const { digest } = found;
      const cached = await this.get(digest);
      if (cached) return { ...cached, ref };
      const built = await this.#building.join(digest, (job) => this.#build(ref, reference, found, job), options);
      return { ...built, ref };
    } catch (error) {
      throw explain(error, ref, parsed);
    }
  }

  async get(digest: string): Promise<Image | undefined> {
    const hex = /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1];
    if (!hex) return undefined;
    const folder = join(this.#folder, hex);
    try {
      const record = JSON.parse(await readFile(join(folder, RECORD_FILE), "utf8")) as Record | null;
      if (record?.format !== FORMAT || record.digest !== digest) return undefined;
      const sizeBytes = await rootfsSize(folder);
      // A file that was cut short would fail in the guest, far from the cause: build it again.
      if (sizeBytes !== record.sizeBytes) return undefined;
      return { ref: digest, digest, rootfs: join(folder, ROOTFS_FILE), config: record.config, sizeBytes };
    } catch (error) {
      if (error instanceof SyntaxError || isMissing(error)) return undefined;
      throw error;
    }
  }

  async collect(inUse: ReadonlySet<string>): Promise<string[]> {
    const deleted: string[] = [];
    for (const name of await readdir(this.#folder)) {
      const digest = `sha256:${name}`;
      if (name.startsWith(TEMPORARY)) {
        await this.#collectTemporary(join(this.#folder, name));
      } else if (/^[0-9a-f]{64}$/.test(name) && !inUse.has(digest) && !this.#building.has(digest)) {
        await this.#discard(join(this.#folder, name));
        deleted.push(digest);
      }
    }
    return deleted;
  }

  async #resolve(ref: string, reference: Reference, job: Job<ImageProgress>): Promise<Found> {
    const stamp = await contentStamp(reference);
    const work = (folder: string) => resolveImage({ ref, reference, folder, tools: this.#tools, job });
    return { digest: await this.#inTemporary(work), stamp };
  }

  #build(ref: string, reference: Reference, found: Found, job: Job<ImageProgress>): Promise<Image> {
    return this.#inTemporary(async (folder) => {
      const work: Import = { ref, reference, folder, tools: this.#tools, job };
      const { digest, stamp } = found;
      // Another build may have ended between the look into the cache and the start of this one.
      const cached = await this.get(digest);
      if (cached) return cached;
      const config = await buildImage(work, digest, stamp);
      const record: Record = { format: FORMAT, digest, config, sizeBytes: await rootfsSize(folder) };
      return this.#publish(folder, record);
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
export async function openStore(folder: string, tools: ImageTools): Promise<ImageStore> {
  // The data folder above is private to the platform's user.
  await mkdir(folder, { recursive: true, mode: 0o755 });
  return new DiskImageStore(folder, tools);
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}
