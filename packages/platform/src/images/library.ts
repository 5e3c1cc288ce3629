/** The images of a platform, for the API: the store, and what its machines need of it. */
import type { EnsureOptions, Image, ImageLibrary, ImageStore, StoredImage } from "./contract.ts";

/** What a library looks after. */
export interface LibraryOptions {
  images: ImageStore;
  /** Digests of the images that machines need now. */
  inUse(): ReadonlySet<string>;
  /** How long an image that no machine needs is kept, in milliseconds. */
  keepMs: number;
  /** Told of a collection that failed; the next one may succeed. */
  onFault(error: unknown): void;
}

/** Images need days to become many. */
const COLLECT_EVERY_MS = 60 * 60_000;

/** Images for users, and the collection of those that nobody needs. */
export class Library implements ImageLibrary {
  readonly #options: LibraryOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LibraryOptions) {
    this.#options = options;
  }

  async list(): Promise<(StoredImage & { inUse: boolean })[]> {
    const { images, inUse } = this.#options;
    const stored = await images.list();
    const used = inUse();
    return stored.map((image) => ({ ...image, inUse: used.has(image.digest) }));
  }

  pull(ref: string, options?: EnsureOptions): Promise<Image> {
    return this.#options.images.ensure(ref, options);
  }

  async prune(): Promise<{ digests: string[]; freedBytes: number }> {
    const { images, inUse } = this.#options;
    const sizes = new Map((await images.list()).map(({ digest, sizeBytes }) => [digest, sizeBytes]));
    const digests = await images.collect(inUse);
    const layers = await images.dropLayers();
    return { digests, freedBytes: digests.reduce((sum, digest) => sum + (sizes.get(digest) ?? 0), layers) };
  }

  /** Collects now, and from time to time until `close`. */
  async open(): Promise<void> {
    await this.#collect();
    this.#timer = setInterval(() => void this.#collect().catch(this.#options.onFault), COLLECT_EVERY_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #collect(): Promise<void> {
    const { images, inUse, keepMs } = this.#options;
    await images.collect(inUse, { unusedForMs: keepMs });
  }
}
