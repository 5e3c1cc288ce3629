/** What all QEMU tests need, made once before the first of them: two files that ran at once would pack it twice. */
import { shellImage } from "./shell-image.ts";
import { packSmallApp } from "./small-app/image.ts";

export async function setup(): Promise<void> {
  await Promise.all([packSmallApp(), shellImage()]);
}
