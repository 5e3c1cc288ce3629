/** Whether an image may be fetched at all, from what its manifest says. */
import { Refusal } from "./flatten/refusal.ts";
import type { LayerCache } from "./layers.ts";
import type { Descriptor } from "./registry/manifest.ts";

/** What an image may take of the disk. */
export interface Room {
  /** How many bytes the layers of an image may have together, unpacked. */
  imageBytes: number;
  /** How many bytes of the disk must stay free. */
  reserveBytes: number;
}

/**
 * Rejects with a Refusal when the disk has no room for what is missing of these blobs, or when they are larger as they
 * are than an image may be unpacked. How large they are unpacked shows only later.
 */
export async function requireRoom(
  blobs: readonly Descriptor[],
  cache: LayerCache,
  { imageBytes, reserveBytes }: Room,
): Promise<void> {
  if (sum(blobs) > imageBytes) throw new Refusal("bytes", String(imageBytes));
  const sizes = await Promise.all(blobs.map(({ digest }) => cache.size(digest)));
  const short = sum(blobs.filter((_, index) => sizes[index] === undefined)) + reserveBytes - (await cache.freeBytes());
  if (short > 0) throw new Refusal("disk", String(short));
}

function sum(blobs: readonly Descriptor[]): number {
  return blobs.reduce((total, { size }) => total + size, 0);
}
