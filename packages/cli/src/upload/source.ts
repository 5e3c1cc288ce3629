/** Opens an image on this machine for an upload. */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ImageSource } from "@hibernaut/client";
import { digestOf } from "../digest.ts";
import { CliError } from "../failure.ts";
import { compressionOfFile, expandFile } from "./compression.ts";
import { dockerHas, dockerSave } from "./docker.ts";
import { dockerSource } from "./docker-source.ts";
import { directoryFiles, type ImageFiles, tarFiles } from "./files.ts";
import { ociSource } from "./oci-source.ts";
import { formatLocal, type LocalImage } from "./reference.ts";

/** Whether the image is on this machine. */
export async function isHere(image: LocalImage): Promise<boolean> {
  if (image.kind === "docker-daemon") return dockerHas(image.path);
  const found = await stat(image.path).catch(() => undefined);
  return found !== undefined && found.isDirectory() === (image.kind === "oci");
}

/**
 * Runs `work` with the image. What Docker saves, and what a compressed archive contains, is in a temporary directory until
 * then. Rejects with a CliError when the image cannot be read.
 */
export async function withSource<T>(
  image: LocalImage,
  signal: AbortSignal,
  work: (source: ImageSource) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-upload-"));
  try {
    const files = await filesOf(image, folder, signal);
    const isOci = image.kind === "oci" || image.kind === "oci-archive";
    const source = await (isOci ? ociSource : dockerSource)(image, files);
    requirePinned(image, source);
    return await work(source);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function filesOf(image: LocalImage, folder: string, signal: AbortSignal): Promise<ImageFiles> {
  const { kind, path } = image;
  const saved = join(folder, "image.tar");
  if (kind === "docker-daemon") {
    await dockerSave(path, saved, signal);
    return tarFiles(saved);
  }
  if (!(await isHere(image))) throw absent(image);
  if (kind === "oci") return directoryFiles(path);
  const compression = await compressionOfFile(path);
  if (compression === "none") return tarFiles(path);
  // Only an uncompressed archive can be read from the middle, which an interrupted upload needs.
  await expandFile(path, compression, saved, signal);
  return tarFiles(saved);
}

function requirePinned(image: LocalImage, { manifest }: ImageSource): void {
  const digest = digestOf(manifest);
  if (image.digest === undefined || image.digest === digest) return;
  const message = `The image ${formatLocal({ ...image, digest: undefined })} is ${digest} now, not ${image.digest}. Put the old image back, or name the new one without a digest.`;
  throw new CliError("failed_precondition", message);
}

function absent(image: LocalImage): CliError {
  const { kind, path } = image;
  const what = kind === "oci" ? "directory" : "file";
  const message = `There is no ${what} ${path} on this machine, so ${formatLocal(image)} cannot be uploaded. Check the path; if it is one on the platform's host, add --no-upload.`;
  return new CliError("not_found", message);
}
