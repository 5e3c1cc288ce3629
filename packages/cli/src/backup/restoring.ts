/** Extracts a backup into an empty directory. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { CliError, UsageError } from "../failure.ts";

/** More complaints than these don't explain the failure better. Characters. */
const MAX_STDERR = 4096;

/**
 * Makes the directory unless it is there and empty. Throws a usage error when something is in it: a restored platform
 * never mixes with another one.
 */
export async function emptyDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const [first] = await readdir(path);
  if (first !== undefined)
    throw new UsageError(`${path} is not empty: it has ${first}. Nothing was changed. Name a new directory.`);
  await chmod(path, 0o700);
}

/** Extracts the backup and flushes it to the disk. When that fails or is interrupted, the directory is empty again. */
export async function extract(file: string, directory: string, signal: AbortSignal): Promise<void> {
  try {
    await run(
      "tar",
      [
        "--extract",
        "--preserve-permissions",
        "--sparse",
        "--exclude=backup.sha256",
        `--file=${file}`,
        `--directory=${directory}`,
      ],
      signal,
    );
    await run("sync", ["--file-system", directory], signal);
  } catch (error) {
    // Everything in it is of this restore: it was empty before.
    for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true, force: true });
    throw error;
  }
}

async function run(program: string, args: string[], signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  const stop = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < MAX_STDERR) stderr += text;
  });
  try {
    const [code] = (await once(child, "close")) as [number | null];
    signal.throwIfAborted();
    if (code !== 0)
      throw new CliError("unavailable", `The backup could not be extracted: ${stderr.trim() || `${program} failed`}.`);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
