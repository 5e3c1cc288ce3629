/** Extracts a backup into an empty directory. */
import { chmod, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Archive, Feed } from "@hibernaut/backup/extract";
import { UsageError } from "../failure.ts";
import { leaveTargets } from "../restored-targets.ts";
import { checkBackup, STDIN, type WholeBackup } from "./checking.ts";

/**
 * Throws a usage error unless there is nothing at the path, or an empty directory: a restored platform never mixes with
 * another one.
 */
export async function requireEmpty(path: string): Promise<void> {
  const [first] = await readdir(path).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw unusable(error, path);
  });
  if (first !== undefined)
    throw new UsageError(`${path} is not empty: it has ${first}. Nothing was changed. Name a new directory.`);
}

/** Makes the directory unless it is there, for its owner only. Throws like {@link requireEmpty}. */
export async function emptyDirectory(path: string): Promise<void> {
  await requireEmpty(path);
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await chmod(path, 0o700);
  } catch (error) {
    throw unusable(error as NodeJS.ErrnoException, path);
  }
}

/** Extracts a backup from a file that was checked. When that fails or is interrupted, the directory is empty again. */
export async function extract(file: string, directory: string, signal: AbortSignal): Promise<void> {
  await orEmpty(directory, () => untar(file, directory, signal));
}

/** Extracts a backup from standard input and checks it on the way. A damaged one leaves the directory empty, too. */
export async function extractStdin(directory: string, signal: AbortSignal): Promise<WholeBackup> {
  let whole: WholeBackup | undefined;
  const { give } = await import("@hibernaut/backup/extract");
  const feed: Feed = async (child) => {
    whole = await checkBackup(STDIN, signal, (chunk) => give(child, chunk));
  };
  await orEmpty(directory, () => untar(STDIN, directory, signal, feed));
  if (whole === undefined) throw new Error("the backup was extracted and not checked");
  return whole;
}

/** Extracts archives one after the other, over each other. When one is damaged, the directory is empty again. */
export async function extractAll(
  archives: AsyncIterable<Archive>,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  const { extractArchive, flushExtracted } = await import("@hibernaut/backup/extract");
  await orEmpty(directory, async () => {
    for await (const archive of archives) await extractArchive(archive, directory, signal);
    await leaveTargets(directory);
    await flushExtracted(directory, signal);
  });
}

/** Everything in the directory is of this restore, because it was empty before. */
async function orEmpty(directory: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true, force: true });
    throw error;
  }
}

async function untar(file: string, directory: string, signal: AbortSignal, feed?: Feed): Promise<void> {
  const { EXTRACT, flushExtracted, runTool } = await import("@hibernaut/backup/extract");
  await runTool("tar", [...EXTRACT, `--file=${file}`, `--directory=${directory}`], signal, feed);
  await leaveTargets(directory);
  await flushExtracted(directory, signal);
}

function unusable(error: NodeJS.ErrnoException, path: string): Error {
  switch (error.code) {
    case "ENOTDIR":
    case "EEXIST":
      return new UsageError(`${path} is not a directory. Nothing was changed. Name a new directory.`);
    case "EACCES":
    case "EROFS":
      return new UsageError(`You may not write in ${path}. Nothing was changed. Name another directory.`);
    default:
      return error;
  }
}
