/** Packs and imports the images that QEMU tests share, once per run: two files that run at the same time must not both do it. */
import { prepareImages } from "./prepared-images.ts";
import { COUNTER_IMAGE } from "./qemu-world.ts";
import { sandboxImage } from "./sandbox-image.ts";
import { shellImage } from "./shell-image.ts";
import { packSmallApp, SMALL_APP } from "./small-app/image.ts";

export async function setup(): Promise<void> {
  const [shell, sandbox] = await Promise.all([shellImage(), sandboxImage(), packSmallApp()]);
  await prepareImages([SMALL_APP, COUNTER_IMAGE, shell, sandbox]);
}
