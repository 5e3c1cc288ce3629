/** Packs the images that QEMU tests share, once per run: two files that run at the same time must not both pack them. */
import { shellImage } from "./shell-image.ts";
import { packSmallApp } from "./small-app/image.ts";

export async function setup(): Promise<void> {
  await Promise.all([packSmallApp(), shellImage()]);
}
