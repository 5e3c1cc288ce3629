/** Digests as images and registries write them. */
import { createHash } from "node:crypto";

/** Returns `sha256:` and 64 hex digits. */
export function digestOf(content: string | Uint8Array): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}
