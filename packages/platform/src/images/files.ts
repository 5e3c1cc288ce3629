/** The few things with files that the image store needs and node:fs has not. */
import { chmod, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** Flushes a file or a folder to the disk. */
export async function flush(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes a file and flushes it to the disk. */
export async function writeFlushed(path: string, text: string): Promise<void> {
  const handle = await open(path, "w", 0o644);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Deletes a folder with all in it. An unpacked image may hold folders that their owner may not
 * write to, which only root can empty as they are.
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
 * Lets the owner enter, read and write every folder and read every file under `folder`. Without root a
 * file of mode 0111 or 0000 could not be put into the root file system. Symbolic links are not followed.
 */
export async function allowOwner(folder: string): Promise<void> {
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
