/** Fetches manifests, verifies their digests, and enforces limits before anything large is downloaded. */
import { digestOf, parseObject, resolveManifest } from "../manifest.ts";
import type { RegistryReference } from "../reference.ts";
import { RegistryFault } from "./fault.ts";
import { type Patience, retrying } from "./patience.ts";
import { textOf } from "./request.ts";
import type { Session } from "./session.ts";

/** A reference from a manifest to a blob (image-spec, "Content Descriptors"). */
export interface Descriptor {
  digest: string;
  /** Bytes. */
  size: number;
}

/** An image's manifest. `text` is exactly what its digest is computed from. */
export interface FetchedManifest {
  text: string;
  config: Descriptor;
  layers: Descriptor[];
}

const ACCEPT = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

/** The size that every registry has to accept (distribution-spec, "Pushing Manifests"), so larger ones do not exist. */
export const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
/** Limited because a configuration is kept in memory. Real ones have a few KB. */
const MAX_CONFIG_BYTES = 8 * 1024 * 1024;
/** Docker itself stops at 127. */
const MAX_LAYERS = 256;
/** Compressed. Larger images exist for machine learning, but they do not suit machines that wake in milliseconds. */
const MAX_IMAGE_BYTES = 64 * 1024 ** 3;
/** Few, because a registry that is down should be reported soon, and no work is lost yet. */
const TRIES = 2;

/** Returns the digest of the manifest for linux/amd64 that the reference currently stands for. */
export async function resolveAt(
  session: Session,
  reference: RegistryReference,
  ref: string,
  patience: Patience,
  signal: AbortSignal,
): Promise<string> {
  const name = reference.digest ?? reference.tag ?? "latest";
  const text = await fetchText(session, reference.repository, name, patience, signal);
  return resolveManifest(text, ref);
}

/** Fetches the manifest of that digest. Rejects with an `invalid` fault when it is not valid or exceeds the limits. */
export async function fetchManifest(
  session: Session,
  { repository }: RegistryReference,
  digest: string,
  ref: string,
  { patience, signal }: { patience: Patience; signal: AbortSignal },
): Promise<FetchedManifest> {
  return readManifest(await fetchText(session, repository, digest, patience, signal), ref);
}

/**
 * Reads the manifest of an image, not of a list of images. Throws an `invalid` fault when it is not valid or exceeds the
 * limits, and `invalid_argument` when it is not JSON.
 */
export function readManifest(text: string, ref: string): FetchedManifest {
  const manifest = parseObject(text, ref, "manifest");
  const config = descriptor(manifest.config, MAX_CONFIG_BYTES);
  if (!Array.isArray(manifest.layers) || manifest.layers.length > MAX_LAYERS)
    throw new RegistryFault("invalid", `its manifest does not list 0 to ${MAX_LAYERS} layers`);
  const layers = manifest.layers.map((layer) => descriptor(layer, MAX_IMAGE_BYTES));
  const total = layers.reduce((sum, { size }) => sum + size, 0);
  if (total > MAX_IMAGE_BYTES)
    throw new RegistryFault("invalid", `it claims to have ${total} bytes; the limit is ${MAX_IMAGE_BYTES}`);
  return { text, config, layers };
}

async function fetchText(
  session: Session,
  repository: string,
  name: string,
  patience: Patience,
  signal: AbortSignal,
): Promise<string> {
  return retrying(
    async () => {
      const response = await session.get(`${repository}/manifests/${name}`, { accept: ACCEPT }, signal);
      const text = await textOf(response, MAX_MANIFEST_BYTES, patience, signal);
      if (name.startsWith("sha256:") && digestOf(text) !== name)
        throw new RegistryFault("invalid", `its manifest is not ${name}: what came has the digest ${digestOf(text)}`);
      return text;
    },
    patience,
    signal,
    TRIES,
  );
}

function descriptor(value: unknown, maximum: number): Descriptor {
  const { digest, size } = (value ?? {}) as { digest?: unknown; size?: unknown };
  if (typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest))
    throw new RegistryFault("invalid", "a part of it has no sha256 digest");
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0 || size > maximum)
    throw new RegistryFault("invalid", `a part of it claims to have ${String(size)} bytes; the limit is ${maximum}`);
  return { digest, size };
}
