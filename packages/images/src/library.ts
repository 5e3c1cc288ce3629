/** The images of a platform, for the API: what the store has, and what machines need of it. */
import type { EnsureOptions, Image, ImageLibrary, ImageStore, StoredImage } from "./contract.ts";

/** What a {@link Library} works with. */
interface LibraryOptions {
  images: ImageStore;
  /** Returns the digests of the images that machines need now. */
  inUse(): ReadonlySet<string>;
  /** How long to keep an image that no machine needs, in milliseconds. */
  keepMs: number;
  /** Receives the error of a failed collection. The next one may succeed. */
  onFault(error: unknown): void;
}

/** Collecting hourly is enough, because images accumulate over days. */
const COLLECT_EVERY_MS = 60 * 60_000;

/** Serves images to the API, and regularly deletes those that no machine needs. */
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

  /** Collects now, and hourly until `close`. */
  async open(): Promise<void> {
    await this.#collect();
    this.#timer = setInterval(() => void this.#collect().catch(this.#options.onFault), COLLECT_EVERY_MS).unref();
  }

  /** Stops collecting. */
  close(): void {
    clearInterval(this.#timer);
  }

  async #collect(): Promise<void> {
    const { images, inUse, keepMs } = this.#options;
    await images.collect(inUse, { unusedForMs: keepMs });
  }
}
