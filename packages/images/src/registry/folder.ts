/** Makes a directory of an image from the layer cache: its manifest, and its blobs by their digests. */
import { constants } from "node:fs";
import { copyFile, link, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LayerCache } from "../layers.ts";
import type { FetchedManifest } from "./manifest.ts";

export const MANIFEST_FILE = "manifest.json";

/** Makes the directory. Layers are linked, so they take up no space. */
export async function writeFolder(
  folder: string,
  { text, config, layers }: FetchedManifest,
  cache: LayerCache,
): Promise<void> {
  await mkdir(folder);
  for (const digest of new Set([config, ...layers].map((part) => part.digest)))
    await linkOrCopy(cache.file(digest), join(folder, digest.slice("sha256:".length)));
  await writeFile(join(folder, MANIFEST_FILE), text);
}

/** Links a file, or copies it where the file system does not support links. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(() => copyFile(from, to, constants.COPYFILE_FICLONE));
}
