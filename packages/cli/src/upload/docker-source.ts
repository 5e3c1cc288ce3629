/** Reads an image from what `docker save` writes. */
import type { ImageSource } from "@hibernaut/client";
import { digestOf } from "../digest.ts";
import { CliError } from "../failure.ts";
import { type Compression, compressionOf, expand } from "./compression.ts";
import type { ImageFiles } from "./files.ts";
import { atPlace, bad, isPlace, type LocalImage, uploadName } from "./reference.ts";

/** An image in `manifest.json`. */
interface Listed {
  Config: string;
  RepoTags: string[];
  Layers: string[];
}

interface Layer {
  file: string;
  compression: Compression;
  /** Bytes, not compressed. */
  size: number;
}

const MEDIA_TYPE = {
  manifest: "application/vnd.docker.distribution.manifest.v2+json",
  config: "application/vnd.docker.container.image.v1+json",
  layer: "application/vnd.docker.image.rootfs.diff.tar.gzip",
} as const;

/**
 * Finds the image that the reference names. The archive has no manifest of its own, so one is made, of the layers as they
 * are without compression: the same as skopeo makes, so that an image has one digest, however it comes to the platform.
 */
export async function dockerSource(image: LocalImage, files: ImageFiles): Promise<ImageSource> {
  const listed = choose(parse(await files.bytes("manifest.json"), image), image);
  const config = await files.bytes(listed.Config);
  const diffIds = diffIdsIn(config, image);
  if (diffIds.length !== listed.Layers.length)
    throw bad(image, `it lists ${listed.Layers.length} layers, and its configuration ${diffIds.length}`);
  const layers = new Map<string, Layer>();
  for (const [index, digest] of diffIds.entries())
    if (!layers.has(digest)) layers.set(digest, await layerOf(files, listed.Layers[index] ?? ""));
  const configDigest = digestOf(config);
  return {
    name: uploadName([fullName(image.name), ...listed.RepoTags], image.path),
    // The order of the keys decides the digest.
    manifest: JSON.stringify({
      schemaVersion: 2,
      mediaType: MEDIA_TYPE.manifest,
      config: { mediaType: MEDIA_TYPE.config, size: config.length, digest: configDigest },
      layers: diffIds.map((digest) => ({ mediaType: MEDIA_TYPE.layer, size: layers.get(digest)?.size ?? 0, digest })),
    }),
    async *read(digest, offset) {
      const layer = layers.get(digest);
      if (digest === configDigest) yield config.subarray(offset);
      else if (layer?.compression === "none") yield* files.read(layer.file, offset);
      else if (layer !== undefined) yield* expand(files.read(layer.file, 0), layer.compression, offset);
    },
  };
}

async function layerOf(files: ImageFiles, file: string): Promise<Layer> {
  const compression = await headOf(files, file);
  if (compression === "none") return { file, compression, size: await files.size(file) };
  let size = 0;
  for await (const chunk of expand(files.read(file, 0), compression)) size += chunk.length;
  return { file, compression, size };
}

async function headOf(files: ImageFiles, file: string): Promise<Compression> {
  await files.size(file); // says so if there is none
  for await (const chunk of files.read(file, 0)) return compressionOf(chunk, `The layer ${file}`);
  return "none";
}

function choose(all: readonly Listed[], image: LocalImage): Listed {
  const { name } = image;
  const names = all.flatMap(({ RepoTags }) => RepoTags);
  if (isPlace(name)) return atPlace(all, image);
  if (name !== "") {
    const found = all.find(({ RepoTags }) => RepoTags.some((tag) => canonical(tag) === canonical(name)));
    if (found !== undefined) return found;
    throw new CliError("not_found", `There is no image ${name} in ${image.path}. It contains ${names.join(", ")}.`);
  }
  const [only, second] = all;
  if (only === undefined) throw bad(image, "it contains no image");
  if (second !== undefined)
    throw bad(image, `it contains several images (${names.join(", ")}). Choose one by adding :NAME`);
  return only;
}

/** `@0` is a place in the file, and not a name. */
function fullName(name: string): string | undefined {
  return name.startsWith("@") ? undefined : name || undefined;
}

/** Docker writes short names, podman writes whole ones. */
function canonical(name: string): string {
  const tagged = name.slice(name.lastIndexOf("/") + 1).includes(":") ? name : `${name}:latest`;
  return tagged.replace(/^(?:docker\.io\/|localhost\/)/, "").replace(/^library\//, "");
}

function parse(json: Buffer, image: LocalImage): Listed[] {
  try {
    const value: unknown = JSON.parse(json.toString("utf8"));
    if (Array.isArray(value) && value.every(isListed))
      return value.map(({ Config, RepoTags, Layers }) => ({ Config, Layers, RepoTags: RepoTags ?? [] }));
  } catch {
    // reported below
  }
  throw bad(image, "its manifest.json is not that of docker save");
}

function isListed(value: unknown): value is Omit<Listed, "RepoTags"> & { RepoTags: string[] | null } {
  const { Config, Layers, RepoTags } = (value ?? {}) as Partial<Record<keyof Listed, unknown>>;
  return typeof Config === "string" && areTexts(Layers) && areTexts(RepoTags ?? []);
}

function areTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function diffIdsIn(config: Buffer, image: LocalImage): string[] {
  try {
    const { rootfs } = JSON.parse(config.toString("utf8")) as { rootfs?: { diff_ids?: unknown } };
    if (areTexts(rootfs?.diff_ids)) return rootfs.diff_ids;
  } catch {
    // reported below
  }
  throw bad(image, "its configuration does not list its layers");
}
