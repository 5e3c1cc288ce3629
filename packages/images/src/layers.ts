/**
 * Layers as registries send them, in `images/blobs/sha256/`. All images share them. They are kept after an import, up to
 * a limit, so that an app's next version downloads only what changed, and an interrupted download continues.
 */
import { mkdir, readdir, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { abortable } from "@hibernaut/lib/async";
import { freeBytes } from "@hibernaut/lib/disk-files";
import { flush } from "@hibernaut/lib/durable";

/** A file of the cache. `name` is 64 hex digits, with `.part` for a layer that is incomplete. */
interface Kept {
  name: string;
  bytes: number;
  usedAtMs: number;
}

/** The cache of layers. One per data directory. */
export class LayerCache {
  readonly #folder: string;
  readonly #maxBytes: number;
  /** How many running pulls and open uploads need a layer, by digest. These layers are never deleted. */
  readonly #needed = new Map<string, number>();
  /** Running downloads and uploads, by digest. Two pulls with a layer in common download it once. */
  readonly #busy = new Map<string, Promise<unknown>>();

  constructor(folder: string, maxBytes: number) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
  }

  /** Path of a complete layer, whether it exists or not. */
  file(digest: string): string {
    return join(this.#folder, hexOf(digest));
  }

  /** Keeps layers from being deleted until the result is disposed of. */
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

  /**
   * Runs `work` while nothing else writes to the layer. A second caller waits. Rejects with the signal's reason when it is
   * aborted while waiting.
   */
  async alone<T>(digest: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let other = this.#busy.get(digest); other; other = this.#busy.get(digest)) await abortable(other, signal);
    const running = work();
    const ended = running.catch(() => {}).finally(() => this.#busy.delete(digest));
    this.#busy.set(digest, ended);
    return running;
  }

  /**
   * Runs `download` unless the layer exists. A second caller waits, then finds the layer or continues the download of the
   * first. Rejects with the signal's reason when it is aborted while waiting.
   */
  async obtain(digest: string, download: (file: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    await this.alone(digest, () => this.#obtain(digest, download), signal);
  }

  /** Deletes what there is of an incomplete layer, unless a running pull or upload needs it. */
  async dropPart(digest: string): Promise<void> {
    if (this.#needed.has(hexOf(digest)) || this.#busy.has(digest)) return;
    await rm(`${this.file(digest)}.part`, { force: true });
  }

  /** Returns the size of a complete layer, in bytes. Undefined when it does not exist. */
  async size(digest: string): Promise<number | undefined> {
    return stat(this.file(digest)).then(
      ({ size }) => size,
      () => undefined,
    );
  }

  /** How many bytes of its disk are free. */
  freeBytes(): Promise<number> {
    return freeBytes(this.#folder);
  }

  /** Deletes the least recently used layers until the rest fits into `maxBytes`. Returns the number of bytes freed. */
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
      // A file that was deleted meanwhile does not count.
      const found = await stat(join(this.#folder, name)).catch(() => undefined);
      if (found) kept.push({ name, bytes: found.size, usedAtMs: found.mtimeMs });
    }
    return kept;
  }
}

function hexOf(digest: string): string {
  return digest.slice("sha256:".length);
}
