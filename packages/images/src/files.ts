/** Deleting and reading unpacked images without root, whatever their permissions are. */
import { chmod, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/**
 * Deletes a directory and everything in it. An unpacked image may have directories that not even their owner may write
 * to, and only root can empty these as they are.
 */
export async function removeTree(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "EACCES" && code !== "EPERM") throw error;
    await allowOwner(folder);
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Lets the owner enter, read and write every directory under `folder` and read every file. Without root, a file of mode
 * 0111 or 0000 could not be put into the root file system. Symbolic links are not followed.
 */
async function allowOwner(folder: string): Promise<void> {
  await addMode(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await allowOwner(path);
    else if (entry.isFile()) await addMode(path, 0o400);
  }
}

async function addMode(path: string, bits: number): Promise<void> {
  const mode = (await stat(path)).mode & 0o7777;
  if ((mode & bits) !== bits) await chmod(path, mode | bits);
}
