/** Which uploads are accepted, and what they consist of. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import { digestOf } from "../manifest.ts";
import { parseReference } from "../reference.ts";
import { RegistryFault } from "../registry/fault.ts";
import { type Descriptor, type FetchedManifest, readManifest } from "../registry/manifest.ts";

/** An image that a client wants to upload. */
export interface UploadPlan {
  /** `upload:NAME@sha256:...` */
  ref: string;
  /** Digest of the manifest. */
  digest: string;
  manifest: FetchedManifest;
}

/** How much may be in progress at a time. */
export interface UploadLimits {
  /** Uploads that have not ended. */
  uploads: number;
  /** The sizes of the blobs of all these uploads together, in bytes. */
  bytes: number;
}

/** Returns what an upload consists of. Throws `invalid_argument` when its name or manifest cannot be used. */
export function planUpload(name: string, text: string): UploadPlan {
  const digest = digestOf(text);
  const ref = `upload:${name}@${digest}`;
  parseReference(ref);
  try {
    return { ref, digest, manifest: readManifest(text, ref) };
  } catch (error) {
    if (!(error instanceof RegistryFault)) throw error;
    const message = `The image ${ref} cannot be uploaded: ${error.message}. Create the image again with a current tool.`;
    throw new HibernautError("invalid_argument", message, { image: ref, reason: error.message });
  }
}

/** Returns the blobs of an image, each once, the configuration first. */
export function blobsOf({ config, layers }: FetchedManifest): Descriptor[] {
  return [...new Map([config, ...layers].map((blob) => [blob.digest, blob])).values()];
}

/** Returns the sum of the sizes of an image's blobs, in bytes. */
export function sizeOf(manifest: FetchedManifest): number {
  return blobsOf(manifest).reduce((sum, { size }) => sum + size, 0);
}

/**
 * Throws unless there is room for another upload in addition to those in progress: `payload_too_large` if it is too large by itself,
 * `resource_exhausted` if it has to wait, `invalid_argument` if it contradicts another one about a blob's size.
 */
export function requireRoom(plan: UploadPlan, others: readonly UploadPlan[], limits: UploadLimits): void {
  const size = sizeOf(plan.manifest);
  const { ref } = plan;
  if (size > limits.bytes) {
    const message = `The image ${ref} has ${size} bytes, and the limit for uploads is ${limits.bytes}. Raise HIBERNAUT_UPLOAD_SIZE on the platform, or push the image to a registry.`;
    throw new HibernautError("payload_too_large", message, { image: ref, bytes: size, limit_bytes: limits.bytes });
  }
  const taken = others.reduce((sum, { manifest }) => sum + sizeOf(manifest), 0);
  const full = others.length >= limits.uploads ? `${others.length} other uploads` : `uploads with ${taken} bytes`;
  if (others.length >= limits.uploads || taken + size > limits.bytes) {
    const message = `The image ${ref} cannot be uploaded now: ${full} have not ended. Wait for them, or end one: \`hibernaut images uploads\` lists them, and \`hibernaut images cancel\` ends one.`;
    throw new HibernautError("resource_exhausted", message, { image: ref, retry_after_s: RETRY_AFTER_S });
  }
  const sizes = new Map(blobsOf(plan.manifest).map((blob) => [blob.digest, blob.size]));
  for (const other of others)
    for (const blob of blobsOf(other.manifest))
      if ((sizes.get(blob.digest) ?? blob.size) !== blob.size) throw contradiction(plan, other, blob);
}

/** An upload takes minutes. */
const RETRY_AFTER_S = 60;

function contradiction({ ref }: UploadPlan, other: UploadPlan, { digest, size }: Descriptor): HibernautError {
  const message = `The image ${ref} cannot be uploaded: the upload of ${other.ref} says that the blob ${digest} has ${size} bytes. One of them is wrong. If it is the other one, end it with \`hibernaut images cancel ${other.digest}\`.`;
  return new HibernautError("invalid_argument", message, { image: ref, digest });
}
