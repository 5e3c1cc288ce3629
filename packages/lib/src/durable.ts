/** Making files durable: on the disk, not only in the kernel's cache. */
import { closeSync, fsyncSync, openSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";

/** Flushes a file, or the entries of a directory, to the disk. */
export async function flush(path: string): Promise<void> {
  await using handle = await open(path, "r");
  await handle.sync();
}

/** Does what {@link flush} does, without yielding to other work. */
export function flushSync(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * Replaces a small file with `text`, and its permissions with `mode`. After a crash or a power cut the file has either
 * its old content or the new one.
 *
 * @example
 * await replaceFile("/var/lib/hibernaut/registries.json", "{}\n", { mode: 0o600 });
 */
export async function replaceFile(path: string, contents: string | Buffer, { mode }: { mode: number }): Promise<void> {
  const draft = `${path}.tmp`;
  {
    await using handle = await open(draft, "w", mode);
    // A draft that a crash left behind may have other permissions.
    await handle.chmod(mode);
    await handle.writeFile(contents);
    await handle.sync();
  }
  await rename(draft, path);
  await flush(dirname(path));
}
