/** Makes a folder of what is in the layer cache that skopeo reads (its `dir:` kind, which takes manifests of any format). */
import { constants } from "node:fs";
import { copyFile, link, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LayerCache } from "../layers.ts";
import type { FetchedManifest } from "./manifest.ts";

/** Writes the folder. Layers are linked, so they take no room. */
export async function writeFolder(
  folder: string,
  { text, config, layers }: FetchedManifest,
  cache: LayerCache,
): Promise<void> {
  await mkdir(folder);
  for (const digest of new Set([config, ...layers].map((part) => part.digest)))
    await linkOrCopy(cache.file(digest), join(folder, digest.slice("sha256:".length)));
  await writeFile(join(folder, "version"), "Directory Transport Version: 1.1\n");
  await writeFile(join(folder, "manifest.json"), text);
}

/** Some file systems know no links. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(() => copyFile(from, to, constants.COPYFILE_FICLONE));
}
