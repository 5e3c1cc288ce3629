/** Uploads of images: which are open, what they still need, and how long they are kept. */
import { readFile, writeFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { never } from "@hibernaut/lib/async";
import type { ImageUploads, OpenUpload, Upload, UploadBlob } from "../contract.ts";
import { explain } from "../failures.ts";
import { readImageConfig } from "../manifest.ts";
import type { Descriptor } from "../registry/manifest.ts";
import { type Room, requireRoom } from "../room.ts";
import { type Open, OpenUploads, type OpenUploadsOptions } from "./open-uploads.ts";
import { blobsOf, planUpload, sizeOf, type UploadPlan } from "./plan.ts";
import { receive, receivedBytes } from "./receive.ts";
import { dropDamaged } from "./stored.ts";

/** What {@link Uploads} works with. */
interface UploadsOptions extends OpenUploadsOptions {
  room: Room;
  /** How long a request may bring no bytes, in milliseconds. Default: 20 s. */
  stallMs?: number;
  /** Whether the platform has the image of a digest. */
  isReady(digest: string): Promise<boolean>;
}

/** A dead connection must not keep a new one waiting for long; a network that works brings a byte sooner. */
const STALL_MS = 20_000;

/** The uploads of a platform. One per data directory. */
export class Uploads implements ImageUploads {
  readonly #options: Required<UploadsOptions>;
  readonly #open: OpenUploads;

  constructor(options: UploadsOptions) {
    this.#options = { stallMs: STALL_MS, ...options };
    this.#open = new OpenUploads(options);
  }

  /** Finds the uploads that an earlier platform left open. Call it once, before anything is collected. */
  recover(): Promise<void> {
    return this.#open.recover();
  }

  async begin(name: string, text: string): Promise<Upload> {
    const plan = planUpload(name, text);
    const { ref, digest } = plan;
    const blobs = blobsOf(plan.manifest);
    if (await this.#options.isReady(digest))
      return { ref, digest, ready: true, blobs: blobs.map((blob) => wire(blob, blob.size)) };
    await this.expire();
    return this.#using(this.#open.admit(plan, name, text), async (upload) => {
      await this.#requireRoom(upload);
      const have = await Promise.all(blobs.map((blob) => this.#progress(upload, blob)));
      await this.#checkConfig(upload);
      return { ref, digest, ready: false, blobs: have };
    });
  }

  async append(digest: string, offset: number, bytes: Readable, signal: AbortSignal): Promise<UploadBlob> {
    const upload = this.#open.all().find(({ manifest }) => find(manifest, digest) !== undefined);
    const blob = upload && find(upload.manifest, digest);
    if (upload === undefined || blob === undefined) throw notExpected(digest);
    return this.#using(upload, async () => {
      const { cache, stallMs } = this.#options;
      const file = cache.file(digest);
      const work = () => receive({ blob, file, offset, bytes, stallMs });
      const end = await cache.alone(digest, work, signal);
      if (end === blob.size)
        for (const one of this.#open.all()) if (one.manifest.config.digest === digest) await this.#checkConfig(one);
      return wire(blob, end);
    });
  }

  async list(): Promise<OpenUpload[]> {
    const uploads = this.#open.all().sort((a, b) => b.usedAtMs - a.usedAtMs);
    return Promise.all(
      uploads.map(async ({ ref, digest, manifest, usedAtMs }) => {
        const have = blobsOf(manifest).map((blob) => receivedBytes(this.#options.cache.file(blob.digest), blob));
        const doneBytes = (await Promise.all(have)).reduce((sum, bytes) => sum + bytes, 0);
        return { ref, digest, sizeBytes: sizeOf(manifest), doneBytes, usedAt: new Date(usedAtMs).toISOString() };
      }),
    );
  }

  cancel(digest: string): Promise<boolean> {
    return this.#open.cancel(digest);
  }

  /** Ends an upload, because its image is ready. Its blobs stay in the cache for as long as others do. */
  finish(digest: string): Promise<void> {
    return this.#open.finish(digest);
  }

  /** Ends an upload that no image can be made of. Blobs that were damaged on the disk are sent again by the next one. */
  async fail(digest: string): Promise<void> {
    await dropDamaged(this.#options.cache, digest);
    await this.finish(digest);
  }

  /** Cleans up uploads that nobody has continued for long. */
  expire(): Promise<void> {
    return this.#open.expire(Date.now());
  }

  /** Ends an upload for which there is no room. */
  async #requireRoom({ digest, manifest }: Open): Promise<void> {
    const { cache, room } = this.#options;
    await requireRoom(blobsOf(manifest), cache, room).catch(async (error) => {
      await this.cancel(digest);
      throw error;
    });
  }

  async #progress({ ref, digest: image }: Open, blob: Descriptor): Promise<UploadBlob> {
    const { cache } = this.#options;
    const file = cache.file(blob.digest);
    // Nothing can be sent of an empty blob.
    if (blob.size === 0) await cache.obtain(blob.digest, (path) => writeFile(path, ""), never());
    const whole = await cache.size(blob.digest);
    if (whole === undefined || whole === blob.size) return wire(blob, await receivedBytes(file, blob));
    await this.cancel(image);
    const message = `The image ${ref} cannot be uploaded: its manifest says that the blob ${blob.digest} has ${blob.size} bytes, and it has ${whole}. Create the image again.`;
    throw new HibernautError("invalid_argument", message, { image: ref, digest: blob.digest });
  }

  /** Refuses an image for another processor as soon as its configuration is here, before its layers are sent. */
  async #checkConfig({ ref, digest, manifest }: Open): Promise<void> {
    const { cache } = this.#options;
    if ((await cache.size(manifest.config.digest)) === undefined) return;
    try {
      readImageConfig(await readFile(cache.file(manifest.config.digest), "utf8"), ref);
    } catch (error) {
      if (isHibernautError(error)) await this.cancel(digest);
      throw error;
    }
  }

  /** Runs `work` on an upload. Failures of the disk become errors for users. */
  async #using<T>(upload: Open, work: (upload: Open) => Promise<T>): Promise<T> {
    try {
      return await this.#open.using(upload, () => work(upload));
    } catch (error) {
      throw explain(error, upload.ref, { kind: "upload", name: "", digest: upload.digest });
    }
  }
}

function find(manifest: UploadPlan["manifest"], digest: string): Descriptor | undefined {
  return blobsOf(manifest).find((blob) => blob.digest === digest);
}

function wire({ digest, size }: Descriptor, offset: number): UploadBlob {
  return { digest, sizeBytes: size, offset };
}

function notExpected(digest: string): HibernautError {
  const message = `No upload that has begun needs the blob ${digest}. Begin one with \`POST /v1/images/uploads\`; one that rested too long, or was canceled, begins again.`;
  return new HibernautError("not_found", message, { digest });
}
