/** The cache of imported images: finds what is there, imports what is not, once for all who ask, and collects. */
import { mkdir } from "node:fs/promises";
import type {
  CollectOptions,
  EnsureOptions,
  HeldImage,
  Image,
  ImageProgress,
  ImageStore,
  StoredImage,
} from "./contract.ts";
import { explain } from "./failures.ts";
import { Holds } from "./holds.ts";
import { buildImage, type ImageTools, type Import, type Registries, resolveImage } from "./import.ts";
import type { LayerCache } from "./layers.ts";
import { formatReference, parseReference, type Reference } from "./reference.ts";
import { type Job, SharedJobs } from "./shared.ts";
import { Shelf } from "./shelf.ts";
import { checkSource, contentStamp } from "./source.ts";

/** What the store works with. */
interface StoreParts {
  tools: ImageTools;
  registries: Registries;
  layers: LayerCache;
}

/** What a reference stood for when it was looked up. */
interface Found {
  digest: string;
  stamp: string;
}

/** The image store on a local disk. One per data folder: the platform holds the folder's lock. */
class DiskImageStore implements ImageStore {
  readonly #shelf: Shelf;
  readonly #parts: StoreParts;
  readonly #resolving = new SharedJobs<Found, ImageProgress>();
  readonly #building = new SharedJobs<Image, ImageProgress>();
  /** Images that somebody is about to use: not collected. */
  readonly #holds = new Holds();

  constructor(folder: string, parts: StoreParts) {
    this.#shelf = new Shelf(folder);
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

  get(digest: string): Promise<Image | undefined> {
    return this.#shelf.get(digest);
  }

  async list(): Promise<StoredImage[]> {
    const images: StoredImage[] = [];
    for (const digest of await this.#shelf.digests()) {
      const record = await this.#shelf.record(digest);
      if (record === undefined) continue;
      const { sizeBytes, ref, importedAt } = record;
      const usedAt = new Date(await this.#shelf.usedAt(digest)).toISOString();
      images.push({ digest, ref, sizeBytes, importedAt: importedAt ?? usedAt });
    }
    return images.sort((a, b) => (a.importedAt < b.importedAt ? 1 : -1));
  }

  async collect(inUse: () => ReadonlySet<string>, { unusedForMs = 0 }: CollectOptions = {}): Promise<string[]> {
    const deleted: string[] = [];
    await this.#shelf.collectTemporary();
    await this.#parts.layers.trim();
    for (const digest of await this.#shelf.digests())
      if (await this.#collectImage(digest, inUse, unusedForMs)) deleted.push(digest);
    return deleted;
  }

  dropLayers(): Promise<number> {
    return this.#parts.layers.trim(0);
  }

  /** Deletes the image unless it is, was lately, or is about to be used. */
  async #collectImage(digest: string, inUse: () => ReadonlySet<string>, unusedForMs: number): Promise<boolean> {
    if (inUse().has(digest)) {
      await this.#shelf.touch(digest);
      return false;
    }
    if (Date.now() - (await this.#shelf.usedAt(digest)) < unusedForMs) return false;
    // Asked again, with nothing awaited until the deletion is announced: nobody can come in between.
    if (inUse().has(digest)) return false;
    return this.#holds.remove(digest, () => this.#shelf.discard(digest));
  }

  /** The image, held, from the disk or from `make`; undefined when it is not there and nobody makes it. */
  async #held(digest: string, make?: () => Promise<Image>): Promise<HeldImage | undefined> {
    const release = await this.#holds.take(digest);
    try {
      const image = (await this.#shelf.get(digest)) ?? (await make?.());
      if (image === undefined) release();
      else await this.#shelf.touch(digest);
      return image && { ...image, [Symbol.dispose]: release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #resolve(ref: string, reference: Reference, job: Job<ImageProgress>): Promise<Found> {
    const stamp = await contentStamp(reference);
    const { tools, registries } = this.#parts;
    const work = (folder: string) => resolveImage({ ref, reference, folder, tools, registries, job });
    return { digest: await this.#shelf.inTemporary(work), stamp };
  }

  #build(ref: string, reference: Reference, { digest, stamp }: Found, job: Job<ImageProgress>): Promise<Image> {
    return this.#shelf.inTemporary(async (folder) => {
      const { tools, registries, layers } = this.#parts;
      const work: Import = { ref, reference, folder, tools, registries, job };
      // Another build may have ended between the look at the disk and the start of this one.
      const cached = await this.#shelf.get(digest);
      if (cached) return cached;
      const config = await buildImage(work, digest, stamp);
      const image = await this.#shelf.publish(folder, { digest, config, ref, importedAt: new Date().toISOString() });
      // The image is there: that old layers could not be deleted is no reason to say otherwise.
      await layers.trim().catch(() => {});
      return image;
    });
  }
}

/** Opens the store in `folder`, which is made if it is not there. */
export async function openStore(folder: string, parts: StoreParts): Promise<ImageStore> {
  // The data folder above is private to the platform's user.
  await mkdir(folder, { recursive: true, mode: 0o755 });
  return new DiskImageStore(folder, parts);
}
