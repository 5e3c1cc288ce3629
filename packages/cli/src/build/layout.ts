/** The OCI layout of a directory's builds: the newest few images, and the layers that they share. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { digestOf } from "../digest.ts";
import type { Layer } from "./layer.ts";

/** The part of an image's configuration that says how it is started, with the names of the OCI specification. */
export interface ImageSettings {
  User?: string;
  Env?: string[];
  Entrypoint?: string[];
  Cmd?: string[];
  WorkingDir?: string;
  ExposedPorts?: Record<string, object>;
}

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
  annotations?: Record<string, string>;
}

interface Blob {
  text: string;
  descriptor: Descriptor;
}

/** Images of a directory that are kept: the last few, to roll back to. */
export const IMAGES_KEPT = 5;
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const NAME = "org.opencontainers.image.ref.name";
/** Hex digits of the digest that name an image: enough for the few that are kept. */
const TAG_DIGITS = 12;

/** The documents of an image made of these layers. Pure: the same layers and settings give the same digest. */
export function imageDocuments(layers: readonly Layer[], settings: ImageSettings): { manifest: Blob; config: Blob } {
  const rootfs = { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) };
  const config = blob("application/vnd.oci.image.config.v1+json", {
    architecture: "amd64",
    os: "linux",
    config: settings,
    rootfs,
  });
  const manifest = blob(MANIFEST, {
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: config.descriptor,
    layers: layers.map(({ digest, size }) => ({
      mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
      digest,
      size,
    })),
  });
  return { manifest, config };
}

/** The index with this image first, and as many of the others as are kept. Pure. */
export function indexWith(image: Descriptor, before: readonly Descriptor[], keep: number): Descriptor[] {
  return [image, ...before.filter(({ digest }) => digest !== image.digest)].slice(0, keep);
}

/** The name of an image in its layout: `b` and the beginning of its digest. */
function tagOf(digest: string): string {
  return `b${digest.slice("sha256:".length, "sha256:".length + TAG_DIGITS)}`;
}

export function blobsOf(layout: string): string {
  return join(layout, "blobs/sha256");
}

/**
 * Adds an image whose layers are in the layout already, keeps the newest `keep` images, and deletes the blobs that none
 * of them needs. Returns the image's digest and its name in the layout.
 */
export async function publish(
  layout: string,
  layers: readonly Layer[],
  { settings, keep, tag }: { settings: ImageSettings; keep: number; tag?: string },
): Promise<{ digest: string; tag: string }> {
  const { manifest, config } = imageDocuments(layers, settings);
  const { digest } = manifest.descriptor;
  const name = tag ?? tagOf(digest);
  await mkdir(blobsOf(layout), { recursive: true });
  for (const { text, descriptor } of [config, manifest]) await replace(blobFile(layout, descriptor.digest), text);
  await addToIndex(layout, { ...manifest.descriptor, annotations: { [NAME]: name } }, keep);
  return { digest, tag: name };
}

/** Moves the only image of a layout into another one. Otherwise as {@link publish}. */
export async function adopt(from: string, layout: string): Promise<{ digest: string; tag: string }> {
  const [image] = await imagesOf(from);
  if (image === undefined) throw new Error(`${from} has no image`);
  await mkdir(blobsOf(layout), { recursive: true });
  for (const name of await readdir(blobsOf(from))) await rename(join(blobsOf(from), name), join(blobsOf(layout), name));
  const tag = tagOf(image.digest);
  await addToIndex(layout, { ...image, annotations: { [NAME]: tag } }, IMAGES_KEPT);
  return { digest: image.digest, tag };
}

async function addToIndex(layout: string, image: Descriptor, keep: number): Promise<void> {
  const manifests = indexWith(image, await imagesOf(layout), keep);
  await replace(join(layout, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  await replace(join(layout, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
  await prune(layout, manifests);
}

/** The images of a layout, newest first; none where there is no layout yet. */
async function imagesOf(layout: string): Promise<Descriptor[]> {
  const text = await readFile(join(layout, "index.json"), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return '{"manifests":[]}';
    throw error;
  });
  return (JSON.parse(text) as { manifests: Descriptor[] }).manifests;
}

async function prune(layout: string, manifests: readonly Descriptor[]): Promise<void> {
  const needed = new Set<string>();
  for (const { digest } of manifests) {
    const text = await readFile(blobFile(layout, digest), "utf8");
    const { config, layers } = JSON.parse(text) as { config: Descriptor; layers: Descriptor[] };
    for (const one of [{ digest }, config, ...layers]) needed.add(one.digest.slice("sha256:".length));
  }
  for (const name of await readdir(blobsOf(layout)))
    if (!needed.has(name)) await rm(join(blobsOf(layout), name), { recursive: true });
}

function blobFile(layout: string, digest: string): string {
  return join(blobsOf(layout), digest.slice("sha256:".length));
}

function blob(mediaType: string, content: unknown): Blob {
  const text = JSON.stringify(content);
  return { text, descriptor: { mediaType, digest: digestOf(text), size: Buffer.byteLength(text) } };
}

/** By a rename: a platform may be reading the layout. */
async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.draft`, text);
  await rename(`${file}.draft`, file);
}
