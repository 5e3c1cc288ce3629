/**
 * Images that are imported once per checkout. A platform of a test finds them imported, because importing an image with
 * Node takes seconds, and how that works is the subject of other tests.
 */
import { existsSync } from "node:fs";
import { copyFile, link, mkdir, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { openImageStore } from "@hibernaut/images/open";
import { IMAGES, RUN_VARIABLE } from "../../../../scripts/leftovers.mjs";

export const PREPARED = join(import.meta.dirname, "../../../../.build/test-images");

/**
 * Imports these images, unless they are there, and deletes all others. Only the global setup does so where this checkout
 * has them; another directory is for another machine.
 */
export async function prepareImages(refs: readonly string[], dataDir = PREPARED): Promise<void> {
  const store = await openImageStore({ dataDir });
  const images = await Promise.all(refs.map((ref) => store.ensure(ref)));
  const current = new Set(images.map(({ digest }) => digest.replace("sha256:", "")));
  for (const name of await preparedImages(dataDir))
    if (!current.has(name)) await rm(join(dataDir, "images", name), { recursive: true });
}

/** Puts the prepared images into a data directory that no platform has opened yet. */
export async function addPreparedImages(dataDir: string): Promise<void> {
  for (const name of await preparedImages()) {
    const [from, to] = [join(PREPARED, "images", name), join(dataDir, "images", name)];
    await mkdir(to, { recursive: true });
    // Nobody writes to a root file system. The record has the time of the image's last use.
    await linkOrCopy(join(from, "rootfs.squashfs"), join(to, "rootfs.squashfs"));
    await copyFile(join(from, "image.json"), join(to, "image.json"));
  }
}

/** None in a run of tests without QEMU. */
async function preparedImages(dataDir = PREPARED): Promise<string[]> {
  const names = existsSync(dataDir) ? await readdir(join(dataDir, "images")) : [];
  return names.filter((name) => /^[0-9a-f]{64}$/.test(name));
}

/** Where the data directory is on another file system, a run links to a copy of its own there; without a run, it is copied. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EXDEV") throw error;
    if (process.env[RUN_VARIABLE] === undefined) return copyFile(from, to);
    // The name of the image is that of its directory: the digest.
    const copy = join(tmpdir(), IMAGES, basename(dirname(from)));
    await link(copy, to).catch(async () => {
      await mkdir(dirname(copy), { recursive: true });
      await copyFile(from, to);
      await link(to, copy).catch(ifThere);
    });
  });
}

/** Another file of tests was faster. */
function ifThere(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST" && error.code !== "EXDEV") throw error;
}
