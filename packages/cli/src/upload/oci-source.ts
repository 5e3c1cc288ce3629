/** Reads an image from an OCI layout (image-spec, "Image Layout"), in a directory or a tar file. */
import type { ImageSource } from "@hibernaut/client";
import { digestOf } from "../digest.ts";
import { CliError } from "../failure.ts";
import type { ImageFiles } from "./files.ts";
import { atPlace, bad, isPlace, type LocalImage, uploadName } from "./reference.ts";

interface Descriptor {
  mediaType?: string;
  digest?: string;
  annotations?: Record<string, string>;
  platform?: { os?: string; architecture?: string };
}

const REF_NAME = "org.opencontainers.image.ref.name";
/** Docker writes the full name here, and only the tag into the other one. */
const FULL_NAME = "io.containerd.image.name";
/** A list may contain lists; none has been seen with more than one below the index. */
const MAX_DEPTH = 4;

/** Finds the image for linux/amd64 that the reference names. Rejects with a CliError. */
export async function ociSource(image: LocalImage, files: ImageFiles): Promise<ImageSource> {
  const chosen = choose(await manifestsIn(files, "index.json"), image);
  let descriptor = chosen;
  let manifest = await text(files, blobName(descriptor, image));
  for (let depth = 0; Array.isArray(parse(manifest).manifests); depth += 1) {
    descriptor = forThisPlatform((parse(manifest).manifests ?? []) as Descriptor[], image);
    if (depth >= MAX_DEPTH) throw bad(image, "its lists of images contain lists without end");
    manifest = await text(files, blobName(descriptor, image));
  }
  if (digestOf(manifest) !== descriptor.digest) throw bad(image, "its manifest is damaged");
  const tag = chosen.annotations?.[REF_NAME];
  const folder = uploadName([], image.path);
  return {
    name: uploadName([chosen.annotations?.[FULL_NAME], fullName(tag), tag && `${folder}:${tag}`], image.path),
    manifest,
    read: (part, offset) => files.read(`blobs/${part.replace(":", "/")}`, offset),
  };
}

/** A reference name is a tag or a whole name. */
function fullName(name: string | undefined): string | undefined {
  return name !== undefined && /[:/]/.test(name) ? name : undefined;
}

function choose(manifests: readonly Descriptor[], image: LocalImage): Descriptor {
  const { name } = image;
  if (isPlace(name)) return atPlace(manifests, image);
  const names = manifests.map(({ annotations }) => annotations?.[REF_NAME] ?? "");
  if (name !== "") {
    const found = manifests[names.indexOf(name)];
    if (found !== undefined) return found;
    throw new CliError("not_found", `There is no image ${name} in ${image.path}. ${listed(names)}`);
  }
  const [only, second] = manifests;
  if (only === undefined) throw bad(image, "it contains no image");
  if (second !== undefined) throw bad(image, `it contains several images. ${listed(names)} Choose one by adding :NAME`);
  return only;
}

function listed(names: readonly string[]): string {
  const known = names.filter((name) => name !== "");
  return known.length === 0 ? "Its images have no names: write @0 for the first." : `It contains ${known.join(", ")}.`;
}

function forThisPlatform(manifests: readonly Descriptor[], image: LocalImage): Descriptor {
  const found = manifests.find(({ platform }) => platform?.os === "linux" && platform.architecture === "amd64");
  if (found !== undefined) return found;
  const platforms = manifests.map(({ platform }) => `${platform?.os ?? "?"}/${platform?.architecture ?? "?"}`);
  throw bad(image, `it is for ${platforms.join(", ")}; machines run linux/amd64`);
}

async function manifestsIn(files: ImageFiles, name: string): Promise<Descriptor[]> {
  const { manifests } = parse(await text(files, name));
  return Array.isArray(manifests) ? (manifests as Descriptor[]) : [];
}

function blobName({ digest }: Descriptor, image: LocalImage): string {
  if (typeof digest === "string" && /^sha256:[0-9a-f]{64}$/.test(digest)) return `blobs/sha256/${digest.slice(7)}`;
  throw bad(image, "its index names a part without a sha256 digest");
}

async function text(files: ImageFiles, name: string): Promise<string> {
  return (await files.bytes(name)).toString("utf8");
}

function parse(json: string): { manifests?: unknown } {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {}; // the platform refuses what is not a manifest
  }
}
