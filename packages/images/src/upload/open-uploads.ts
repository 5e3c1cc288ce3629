/** The uploads that have not ended: in memory, where room is decided about, and on the disk, where they outlive the platform. */
import { isHibernautError } from "@hibernaut/domain/errors";
import type { LayerCache } from "../layers.ts";
import { blobsOf, planUpload, requireRoom, type UploadLimits, type UploadPlan } from "./plan.ts";
import { UploadRecords } from "./records.ts";
import { storedText, storeManifest } from "./stored.ts";

/** What {@link OpenUploads} works with. */
export interface OpenUploadsOptions {
  /** Where open uploads are recorded. */
  folder: string;
  /** Where blobs go: the same place that pulls download to, so that each is sent once. */
  cache: LayerCache;
  limits: UploadLimits;
  /** How long an upload may rest before it is cleaned up, in milliseconds. */
  keepMs: number;
}

/** An upload that has not ended. */
export interface Open extends UploadPlan {
  usedAtMs: number;
  /** How many requests are at work on it. */
  active: number;
  /** Keeps its blobs in the cache. */
  hold: Promise<Disposable>;
  /** Resolves when it is on the disk, so that it outlives the platform. */
  stored: Promise<void>;
}

/** The open uploads of a platform. */
export class OpenUploads {
  readonly #options: OpenUploadsOptions;
  readonly #records: UploadRecords;
  /** By digest of the manifest. Decisions about room are made on this map, without waiting. */
  readonly #open = new Map<string, Open>();

  constructor(options: OpenUploadsOptions) {
    this.#options = options;
    this.#records = new UploadRecords(options.folder);
  }

  /** Finds the uploads that an earlier platform left open. */
  async recover(): Promise<void> {
    for (const { digest, name, usedAtMs } of await this.#records.list()) {
      const plan = await this.#planOf(digest, name);
      // Its client begins again, and sends only what is missing.
      if (plan === undefined) await this.#records.delete(digest);
      else await this.#add(plan, usedAtMs).hold;
    }
  }

  /** Returns the open upload of an image. Undefined when there is none. */
  get(digest: string): Open | undefined {
    return this.#open.get(digest);
  }

  /** Returns all open uploads. */
  all(): Open[] {
    return [...this.#open.values()];
  }

  /** Opens an upload, or returns the one of the same image. Throws when there is no room for it. */
  admit(plan: UploadPlan, name: string, text: string): Open {
    const known = this.#open.get(plan.digest);
    if (known !== undefined) return known;
    requireRoom(plan, this.all(), this.#options.limits);
    const upload = this.#add(plan, Date.now());
    upload.stored = this.#store(name, upload, text);
    upload.stored.catch(() => {}); // every request that uses the upload gets the error
    return upload;
  }

  /** Runs `work` on an upload, which does not expire meanwhile. */
  async using<T>(upload: Open, work: () => Promise<T>): Promise<T> {
    upload.active += 1;
    try {
      await upload.stored;
      return await work();
    } finally {
      upload.active -= 1;
      upload.usedAtMs = Date.now();
      if (this.#open.has(upload.digest)) await this.#records.touch(upload.digest);
    }
  }

  /** Ends an upload. Its blobs stay in the cache for as long as others do. */
  async finish(digest: string): Promise<void> {
    const upload = this.#open.get(digest);
    if (upload === undefined) return;
    this.#open.delete(digest);
    (await upload.hold)[Symbol.dispose]();
    await this.#records.delete(digest);
  }

  /** Ends an upload and deletes its unfinished blobs. False when there is none. */
  async cancel(digest: string): Promise<boolean> {
    const upload = this.#open.get(digest);
    if (upload === undefined) return false;
    await this.finish(digest);
    for (const blob of blobsOf(upload.manifest)) await this.#options.cache.dropPart(blob.digest);
    return true;
  }

  /** Cancels uploads that nobody has continued for long. */
  async expire(now: number): Promise<void> {
    for (const { digest, usedAtMs, active } of this.all())
      if (active === 0 && now - usedAtMs > this.#options.keepMs) await this.cancel(digest);
  }

  /** Reads the plan of a recorded upload. Undefined when its manifest is gone, damaged or beyond the limits of this version. */
  async #planOf(digest: string, name: string): Promise<UploadPlan | undefined> {
    const text = await storedText(this.#options.cache, digest);
    try {
      return text === undefined ? undefined : planUpload(name, text);
    } catch (error) {
      if (isHibernautError(error, "invalid_argument")) return undefined;
      throw error;
    }
  }

  #add(plan: UploadPlan, usedAtMs: number): Open {
    const digests = [plan.digest, ...blobsOf(plan.manifest).map(({ digest }) => digest)];
    const hold = this.#options.cache.hold(digests);
    hold.catch(() => {}); // the caller that waits for it gets the error
    const upload: Open = { ...plan, usedAtMs, active: 0, hold, stored: Promise.resolve() };
    this.#open.set(plan.digest, upload);
    return upload;
  }

  /** Puts the manifest and the record on the disk. An upload that cannot be stored has not begun. */
  async #store(name: string, upload: Open, text: string): Promise<void> {
    try {
      await upload.hold;
      await storeManifest(this.#options.cache, upload.digest, text);
      await this.#records.put(upload.digest, name);
    } catch (error) {
      this.#open.delete(upload.digest);
      await upload.hold.then(
        (hold) => hold[Symbol.dispose](),
        () => {},
      );
      throw error;
    }
  }
}
