/**
 * Packs and imports the images that QEMU tests share, once per run: two files that run at the same time must not both do it.
 * As a program of its own, it does so before Vitest begins, next to the checks.
 */
import { probeImage } from "../../../network/test/probe/image.ts";
import { prepareImages } from "./prepared-images.ts";
import { COUNTER_IMAGE, ORDERS_IMAGE } from "./qemu-world.ts";
import { sandboxImage } from "./sandbox-image.ts";
import { shellImage } from "./shell-image.ts";
import { packSmallApp, SMALL_APP } from "./small-app/image.ts";

export async function setup(): Promise<void> {
  // The bridge needs root, and its tests need programs of an administrator.
  const probe = process.getuid?.() === 0 ? [probeImage()] : [];
  const packed = await Promise.all([shellImage(), sandboxImage(), ...probe]);
  await packSmallApp();
  await prepareImages([SMALL_APP, COUNTER_IMAGE, ORDERS_IMAGE, ...packed]);
}

if (import.meta.main) await setup();
