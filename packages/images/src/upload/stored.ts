/** Uploaded images in the layer cache: the manifest is a blob there, like the configuration and the layers. */
import { readFile, rm } from "node:fs/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { never } from "@hibernaut/lib/async";
import { replaceFile } from "@hibernaut/lib/durable";
import type { LayerCache } from "../layers.ts";
import { digestOf } from "../manifest.ts";
import type { UploadReference } from "../reference.ts";
import { writeFolder } from "../registry/folder.ts";
import { type FetchedManifest, MAX_MANIFEST_BYTES, readManifest } from "../registry/manifest.ts";
import { blobsOf } from "./plan.ts";
import { digestOfFile } from "./receive.ts";

/** Stores a manifest. It is on the disk when this resolves. */
export async function storeManifest(cache: LayerCache, digest: string, text: string): Promise<void> {
  const store = async () => {
    if ((await storedText(cache, digest)) === undefined) await replaceFile(cache.file(digest), text, { mode: 0o600 });
  };
  await cache.alone(digest, store, never());
}

/**
 * Deletes the blobs of an image that were damaged on the disk since they were checked, so that the next upload sends them
 * again. Reads all of them.
 */
export async function dropDamaged(cache: LayerCache, digest: string): Promise<void> {
  const text = await storedText(cache, digest);
  if (text === undefined) return;
  for (const blob of blobsOf(readManifest(text, digest))) {
    if ((await cache.size(blob.digest)) === undefined) continue;
    const file = cache.file(blob.digest);
    const check = async () => {
      if ((await digestOfFile(file)) !== blob.digest) await rm(file, { force: true });
    };
    await cache.alone(blob.digest, check, never());
  }
}

/** Checks that an uploaded image, and not only its name, is here. Rejects with `not_found`. */
export async function requireUploaded(cache: LayerCache, ref: string, { digest }: UploadReference): Promise<void> {
  await uploadedManifest(cache, ref, digest);
}

/** Makes a directory of an uploaded image. Rejects with `not_found` unless every blob is here. */
export async function openUploaded(
  cache: LayerCache,
  ref: string,
  { digest }: UploadReference,
  folder: string,
): Promise<void> {
  const manifest = await uploadedManifest(cache, ref, digest);
  using _ = await cache.hold([digest, ...blobsOf(manifest).map((blob) => blob.digest)]);
  const sizes = await Promise.all(blobsOf(manifest).map((blob) => cache.size(blob.digest)));
  const missing = sizes.filter((size) => size === undefined).length;
  if (missing > 0) throw gone(ref, `${missing} of its ${sizes.length} parts are not here`);
  await writeFolder(folder, manifest, cache);
}

/** Reads a stored manifest. Undefined when it is not there, or damaged. */
export async function storedText(cache: LayerCache, digest: string): Promise<string | undefined> {
  // The digest may be that of a layer, which is too large to be read as a text.
  const size = await cache.size(digest);
  if (size === undefined || size > MAX_MANIFEST_BYTES) return undefined;
  const text = await readFile(cache.file(digest), "utf8");
  return digestOf(text) === digest ? text : undefined;
}

async function uploadedManifest(cache: LayerCache, ref: string, digest: string): Promise<FetchedManifest> {
  const text = await storedText(cache, digest);
  if (text === undefined) throw gone(ref, "it was never uploaded, or deleted since");
  return readManifest(text, ref);
}

function gone(ref: string, why: string): HibernautError {
  const message = `The platform does not have the image ${ref}: ${why}. Upload it with \`hibernaut images push\`, or deploy it from its file, as in \`hibernaut deploy --image docker-archive:shop.tar\`.`;
  return new HibernautError("not_found", message, { image: ref });
}
