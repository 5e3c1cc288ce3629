/** Images: OCI references and archives in, root file systems out. */
import { join } from "node:path";
import type { ImageStore } from "./contract.ts";
import type { ImageTools } from "./import.ts";
import { openStore } from "./store.ts";

export type { Image, ImageConfig, ImageProgress, ImageStore } from "./contract.ts";
export type { ImageTools } from "./import.ts";

export interface ImageStoreOptions {
  /** The platform's data folder; images go to `images/` in it. */
  dataDir: string;
  /** Programs to use instead of those in PATH. */
  tools?: Partial<ImageTools>;
}

/**
 * Opens the image store. Needs skopeo, umoci and mksquashfs when an image is imported.
 *
 * @example
 * const images = await openImageStore({ dataDir: "/var/lib/hibernaut" });
 * const image = await images.ensure("docker-archive:/tmp/app.tar");
 */
export function openImageStore({ dataDir, tools = {} }: ImageStoreOptions): Promise<ImageStore> {
  const programs = { skopeo: "skopeo", umoci: "umoci", mksquashfs: "mksquashfs", ...tools };
  return openStore(join(dataDir, "images"), programs);
}
