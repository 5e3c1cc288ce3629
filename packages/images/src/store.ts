/** The cache of imported images: finds images, imports missing ones once for all callers, and deletes unused ones. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { flush } from "@hibernaut/lib/durable";
import { hashOf } from "./blob-file.ts";
import type {
  CollectOptions,
  EnsureOptions,
  FetchImage,
  HeldImage,
  Image,
  ImageProgress,
  ImageStore,
  StoredImage,
} from "./contract.ts";
import { explain } from "./failures.ts";
import { ImageDirectory } from "./image-directory.ts";
import { buildImage, type ImageTools, type Import, type Registries, ROOTFS_FILE, resolveImage } from "./import.ts";
import type { LayerCache } from "./layers.ts";
import { formatReference, parseReference, type Reference } from "./reference.ts";
import { type Job, SharedJobs } from "./shared.ts";
import { checkSource, contentStamp } from "./source.ts";
import type { Unpacking } from "./unpack.ts";
import type { Uploads } from "./upload/uploads.ts";
import { UseCounter } from "./use-counter.ts";

/** What the image store works with. */
interface StoreParts {
  tools: ImageTools;
  registries: Registries;
  layers: LayerCache;
  unpacking: Unpacking;
  uploads: Pick<Uploads, "finish" | "fail" | "expire">;
  /** Gets images from other hosts. By default, nobody has any. */
  fetch?: FetchImage | undefined;
  /** How much disk images may take that are not in use. */
  keep: { bytes: number; inUse(): ReadonlySet<string> };
}

/** The image of a reference when it was resolved. */
interface ResolvedImage {
  digest: string;
  stamp: string;
}

/** An uploaded image cannot be pulled again. A deploy makes a release of it within seconds, if the host is not very busy. */
const UPLOAD_GRACE_MS = 10 * 60_000;

/** The image store on a local disk. One per data directory, which the platform has locked. */
class DiskImageStore implements ImageStore {
  readonly #directory: ImageDirectory;
  readonly #parts: StoreParts;
  readonly #resolving = new SharedJobs<ResolvedImage, ImageProgress>();
  readonly #building = new SharedJobs<Image, ImageProgress>();
  readonly #fetching = new SharedJobs<boolean, ImageProgress>();
  /** Images that callers are about to use. They are not deleted. */
  readonly #uses = new UseCounter();
  /** Of images that were asked for. A root file system never changes. */
  readonly #fingerprints = new Map<string, string>();

  constructor(folder: string, parts: StoreParts) {
    this.#directory = new ImageDirectory(folder);
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
      // A digest identifies the image, so there is no need for its source, which may be unreachable or changed.
      const pinned = parsed.digest ? await this.#pinned(parsed.digest, options) : undefined;
      if (pinned) {
        await this.#parts.uploads.finish(pinned.digest);
        return { ...pinned, ref };
      }
      const reference = await checkSource(parsed);
      const key = formatReference(reference);
      const found = await this.#resolving.join(key, (job) => this.#resolve(ref, reference, job), options);
      requirePinned(reference, found.digest);
      const held = await this.#held(found.digest, () =>
        this.#building.join(found.digest, (job) => this.#build(ref, reference, found, job), options),
      );
      if (held === undefined) throw new Error("the build returned no image");
      return { ...held, ref };
    } catch (error) {
      const explained = explain(error, ref, parsed);
      // Nothing that could still be sent would make an image of it.
      if (parsed.kind === "upload" && isHibernautError(explained, "invalid_argument"))
        await this.#parts.uploads.fail(parsed.digest);
      throw explained;
    }
  }

  async adopt(digest: string, fetch: FetchImage, options: EnsureOptions = {}): Promise<HeldImage | undefined> {
    const present = await this.#held(digest);
    if (present !== undefined) return present;
    const fetching = this.#fetching.join(digest, (job) => this.#fetch(digest, fetch, job), options);
    return (await fetching) ? this.#held(digest) : undefined;
  }

  get(digest: string): Promise<Image | undefined> {
    return this.#directory.get(digest);
  }

  async fingerprint(digest: string): Promise<string | undefined> {
    const image = await this.#directory.get(digest);
    if (image === undefined) return undefined;
    const known = this.#fingerprints.get(digest) ?? (await hashOf(image.rootfs)).digest("hex");
    this.#fingerprints.set(digest, known);
    return known;
  }

  async list(): Promise<StoredImage[]> {
    const images: StoredImage[] = [];
    for (const digest of await this.#directory.digests()) {
      const record = await this.#directory.record(digest);
      if (record === undefined) continue;
      const { sizeBytes, ref, importedAt } = record;
      const usedAt = new Date(await this.#directory.usedAt(digest)).toISOString();
      images.push({ digest, ref, sizeBytes, importedAt: importedAt ?? usedAt });
    }
    return images.sort((a, b) => (a.importedAt < b.importedAt ? 1 : -1));
  }

  async collect(inUse: () => ReadonlySet<string>, { unusedForMs = 0 }: CollectOptions = {}): Promise<string[]> {
    const deleted: string[] = [];
    await this.#directory.collectTemporary();
    await this.#parts.uploads.expire();
    await this.#parts.layers.trim();
    for (const digest of await this.#directory.digests())
      if (await this.#collectImage(digest, inUse, unusedForMs)) deleted.push(digest);
    return [...deleted, ...(await this.#trimUnused(inUse))];
  }

  dropLayers(): Promise<number> {
    return this.#parts.layers.trim(0);
  }

  /** Deletes images that are not in use, the least recently used first, until the rest of them fits. */
  async #trimUnused(inUse: () => ReadonlySet<string>): Promise<string[]> {
    const { bytes } = this.#parts.keep;
    const all = await Promise.all(
      (await this.#directory.digests()).map(async (digest) => {
        const [record, usedAt] = await Promise.all([this.#directory.record(digest), this.#directory.usedAt(digest)]);
        return { digest, usedAt, size: record?.sizeBytes ?? 0 };
      }),
    );
    const sizeOf = (images: typeof all) => images.reduce((sum, { size }) => sum + size, 0);
    if (sizeOf(all) <= bytes) return [];
    const used = inUse();
    const unused = all.filter(({ digest }) => !used.has(digest)).sort((a, b) => a.usedAt - b.usedAt);
    let left = sizeOf(unused);
    const deleted: string[] = [];
    for (const { digest, size } of unused) {
      if (left <= bytes) break;
      if (!(await this.#collectImage(digest, inUse, 0))) continue;
      deleted.push(digest);
      left -= size;
    }
    return deleted;
  }

  /** Deletes an image unless it is in use, was used recently, or is about to be used. */
  async #collectImage(digest: string, inUse: () => ReadonlySet<string>, unusedForMs: number): Promise<boolean> {
    if (inUse().has(digest)) {
      await this.#directory.touch(digest);
      return false;
    }
    if (Date.now() - (await this.#directory.usedAt(digest)) < unusedForMs) return false;
    if (await this.#isFreshUpload(digest)) return false;
    // Checked again, and nothing is awaited until the deletion is announced, so nothing can happen in between.
    if (inUse().has(digest)) return false;
    return this.#uses.removeUnused(digest, () => {
      this.#fingerprints.delete(digest);
      return this.#directory.discard(digest);
    });
  }

  /** Whether an image was uploaded so recently that its client may not have made a release or a machine of it yet. */
  async #isFreshUpload(digest: string): Promise<boolean> {
    const { ref = "", importedAt = "" } = (await this.#directory.record(digest)) ?? {};
    return ref.startsWith("upload:") && Date.now() - Date.parse(importedAt) < UPLOAD_GRACE_MS;
  }

  /** Returns an image, held, from the disk or from `make`. Undefined when it is not on the disk and there is no `make`. */
  async #held(digest: string, make?: () => Promise<Image>): Promise<HeldImage | undefined> {
    const release = await this.#uses.use(digest);
    try {
      const image = (await this.#directory.get(digest)) ?? (await make?.());
      if (image === undefined) release();
      else await this.#directory.touch(digest);
      return image && { ...image, [Symbol.dispose]: release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #resolve(ref: string, reference: Reference, job: Job<ImageProgress>): Promise<ResolvedImage> {
    const stamp = await contentStamp(reference);
    const { tools, registries, layers, unpacking } = this.#parts;
    const work = (folder: string) =>
      resolveImage({ ref, reference, folder, tools, registries, layers, unpacking, job });
    return { digest: await this.#directory.inTemporary(work), stamp };
  }

  /** Returns the image of a digest, held, from the disk or from another host. */
  async #pinned(digest: string, options: EnsureOptions): Promise<HeldImage | undefined> {
    const { fetch } = this.#parts;
    return fetch === undefined ? this.#held(digest) : this.adopt(digest, fetch, options);
  }

  /** Resolves with whether another host had the image. */
  #fetch(digest: string, fetch: FetchImage, { signal }: Job<ImageProgress>): Promise<boolean> {
    return this.#directory.inTemporary(async (folder) => {
      const file = join(folder, ROOTFS_FILE);
      const found = await fetch(digest, file, signal);
      if (found === undefined) return false;
      await flush(file);
      await this.#directory.publish(folder, { digest, importedAt: new Date().toISOString(), ...found });
      return true;
    });
  }

  #build(ref: string, reference: Reference, { digest, stamp }: ResolvedImage, job: Job<ImageProgress>): Promise<Image> {
    return this.#directory.inTemporary(async (folder) => {
      const { tools, registries, layers, uploads, unpacking } = this.#parts;
      const work: Import = { ref, reference, folder, tools, registries, layers, unpacking, job };
      // Another build may have finished between the last check and the start of this one.
      const cached = await this.#directory.get(digest);
      if (cached) return cached;
      const config = await buildImage(work, digest, stamp);
      const image = await this.#directory.publish(folder, {
        digest,
        config,
        ref,
        importedAt: new Date().toISOString(),
      });
      await uploads.finish(digest);
      // The image is complete. A failure to delete old ones, or layers, does not change that.
      await layers.trim().catch(() => {});
      await this.#trimUnused(this.#parts.keep.inUse).catch(() => {});
      return image;
    });
  }
}

/** A file, or an image in Docker, may have changed since its digest was taken. A registry finds images by digest. */
function requirePinned(reference: Reference, digest: string): void {
  if (reference.kind === "registry" || reference.digest === undefined || reference.digest === digest) return;
  const image = formatReference(reference);
  throw new HibernautError(
    "failed_precondition",
    `The image ${image} has changed: it is ${digest} now, not ${reference.digest}. Put the old image back, or name the new one without a digest.`,
    { image, digest },
  );
}

/** Opens the store in `folder`, and makes that directory when it does not exist. */
export async function openStore(folder: string, parts: StoreParts): Promise<ImageStore> {
  // Readable by others, but within the data directory, which only the platform's user can enter.
  await mkdir(folder, { recursive: true, mode: 0o755 });
  return new DiskImageStore(folder, parts);
}
