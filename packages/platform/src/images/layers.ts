/**
 * Layers as registries send them, in `images/blobs/sha256/`: shared by all images, kept within a bound after an
 * import so that an app's next version downloads only what changed, and the place where a cut download goes on.
 */
import { mkdir, readdir, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { abortable } from "../lib/async.ts";
import { flush } from "../lib/durable.ts";

/** Something kept: `name` is 64 hex digits, with `.part` when it is not whole. */
interface Kept {
  name: string;
  bytes: number;
  usedAtMs: number;
}

/** The cache of layers. One per data folder. */
export class LayerCache {
  readonly #folder: string;
  readonly #maxBytes: number;
  /** Digests that pulls under way need, with how many need them: never deleted. */
  readonly #needed = new Map<string, number>();
  /** Downloads under way, by digest: two pulls with a layer in common write it once. */
  readonly #busy = new Map<string, Promise<void>>();

  constructor(folder: string, maxBytes: number) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
  }

  /** Where the layer is, or will be, whole. */
  file(digest: string): string {
    return join(this.#folder, hexOf(digest));
  }

  /** Keeps the layers from being deleted until disposed of. */
  async hold(digests: readonly string[]): Promise<Disposable> {
    for (const digest of digests) this.#needed.set(hexOf(digest), (this.#needed.get(hexOf(digest)) ?? 0) + 1);
    const release = () => {
      for (const digest of digests) {
        const left = (this.#needed.get(hexOf(digest)) ?? 1) - 1;
        if (left > 0) this.#needed.set(hexOf(digest), left);
        else this.#needed.delete(hexOf(digest));
      }
    };
    await mkdir(this.#folder, { recursive: true, mode: 0o700 }).catch((error) => {
      release();
      throw error;
    });
    return { [Symbol.dispose]: release };
  }

  /** Runs `download` unless the layer is there. Whoever comes second waits, and then finds it, or goes on with what is there. */
  async obtain(digest: string, download: (file: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    for (let other = this.#busy.get(digest); other; other = this.#busy.get(digest))
      await abortable(
        other.catch(() => {}),
        signal,
      );
    const work = this.#obtain(digest, download).finally(() => this.#busy.delete(digest));
    this.#busy.set(digest, work);
    await work;
  }

  /** Bytes of a whole layer; undefined when it is not there. */
  async size(digest: string): Promise<number | undefined> {
    return stat(this.file(digest)).then(
      ({ size }) => size,
      () => undefined,
    );
  }

  /** Deletes what was not used for longest until the rest fits into the bound. Returns the bytes that were freed. */
  async trim(maxBytes = this.#maxBytes): Promise<number> {
    const kept = (await this.#list()).sort((a, b) => a.usedAtMs - b.usedAtMs);
    let total = kept.reduce((sum, { bytes }) => sum + bytes, 0);
    let freed = 0;
    for (const { name, bytes } of kept) {
      if (total <= maxBytes) break;
      if (this.#needed.has(name.replace(/\.part$/, ""))) continue;
      await rm(join(this.#folder, name), { force: true });
      total -= bytes;
      freed += bytes;
    }
    return freed;
  }

  async #obtain(digest: string, download: (file: string) => Promise<void>): Promise<void> {
    const file = this.file(digest);
    const now = new Date();
    const found = await utimes(file, now, now).then(
      () => true,
      () => false,
    );
    if (found) return;
    await download(file);
    await flush(this.#folder);
  }

  async #list(): Promise<Kept[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const kept: Kept[] = [];
    for (const name of names) {
      // Gone meanwhile: nothing to count.
      const found = await stat(join(this.#folder, name)).catch(() => undefined);
      if (found) kept.push({ name, bytes: found.size, usedAtMs: found.mtimeMs });
    }
    return kept;
  }
}

function hexOf(digest: string): string {
  return digest.slice("sha256:".length);
}
