/** Whose the files of a machine are: its own user's, where it has one. */
import { chmod, lchown, stat } from "node:fs/promises";

const OTHERS_READ = 0o004;

/** Gives files to a user and its group, unless they are theirs already. */
export async function give(paths: readonly string[], uid: number): Promise<void> {
  await Promise.all(
    paths.map(async (path) => {
      const now = await stat(path);
      if (now.uid !== uid || now.gid !== uid) await lchown(path, uid, uid);
    }),
  );
}

/** Lets every user read files that machines share. The directories above them still keep others away. */
export async function share(paths: readonly string[]): Promise<void> {
  await Promise.all(
    paths.map(async (path) => {
      const { mode } = await stat(path);
      if ((mode & OTHERS_READ) === 0) await chmod(path, (mode & 0o7777) | OTHERS_READ);
    }),
  );
}

/** The size of the largest of these files, in bytes. */
export async function largest(paths: readonly string[]): Promise<number> {
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path)).size));
  return Math.max(0, ...sizes);
}

/** Gives a file to the owner of another one: QEMU in a jail connects only to sockets of its own user. */
export async function shareOwner(of: string, path: string): Promise<void> {
  const { uid } = await stat(of);
  if (uid !== process.getuid?.()) await give([path], uid);
}
