/** Extracts a backup into an empty directory. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, lstat, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { CliError, UsageError } from "../failure.ts";
import { leaveTargets } from "../restored-targets.ts";
import { checkBackup, STDIN, type WholeBackup } from "./checking.ts";

/** More complaints than these don't explain the failure better. Characters. */
const MAX_STDERR = 4096;

const EXTRACT = ["--extract", "--preserve-permissions", "--sparse", "--exclude=backup.sha256"];

type Feed = (child: ChildProcess) => Promise<void>;

/** The program that is fed has failed, and its exit code and its complaints say why. */
class Refused extends CliError {}

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
  const feed: Feed = async (child) => {
    whole = await checkBackup(STDIN, signal, (chunk) => give(child, chunk));
  };
  await orEmpty(directory, () => untar(STDIN, directory, signal, feed));
  if (whole === undefined) throw new Error("the backup was extracted and not checked");
  return whole;
}

/** A tar archive that throws at its end, or before, if it is damaged. */
type Archive = AsyncIterable<Buffer>;

/** Extracts archives one after the other, over each other. When one is damaged, the directory is empty again. */
export async function extractAll(
  archives: AsyncIterable<Archive>,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  await orEmpty(directory, async () => {
    for await (const archive of archives) {
      await extractFed(directory, signal, async (child) => {
        for await (const chunk of archive) await give(child, chunk);
      });
      await requireNoLinks(directory);
    }
    await leaveTargets(directory);
    await sync(directory, signal);
  });
}

/** A link of one archive would lead the files of the next one elsewhere. Nothing that a platform backs up is one at the top. */
async function requireNoLinks(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const top = join(directory, name);
    const isFolder = (await lstat(top)).isDirectory();
    const below = isFolder ? (await readdir(top)).map((one) => join(top, one)) : [];
    for (const path of [top, ...below])
      if ((await lstat(path)).isSymbolicLink())
        throw new CliError(
          "unavailable",
          `The backup has a link at ${path}, which no platform has made. Nothing was restored.`,
        );
  }
}

/** `tar` stops reading at the end of the archive: what follows it is only checked. */
async function give(child: ChildProcess, chunk: Buffer): Promise<void> {
  if (child.exitCode !== null && child.exitCode !== 0) throw new Refused("unavailable", "tar failed");
  const { stdin } = child;
  if (stdin?.writable && !stdin.write(chunk)) {
    const waiting = new AbortController();
    const { signal } = waiting;
    await Promise.race([once(stdin, "drain", { signal }), once(stdin, "close", { signal })]).finally(() =>
      waiting.abort(),
    );
  }
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
  await run("tar", [...EXTRACT, `--file=${file}`, `--directory=${directory}`], signal, feed);
  await leaveTargets(directory);
  await sync(directory, signal);
}

async function extractFed(directory: string, signal: AbortSignal, feed: Feed): Promise<void> {
  await run("tar", [...EXTRACT, `--file=${STDIN}`, `--directory=${directory}`], signal, feed);
}

async function sync(directory: string, signal: AbortSignal): Promise<void> {
  await run("sync", ["--file-system", directory], signal);
}

async function run(program: string, args: string[], signal: AbortSignal, feed?: Feed): Promise<void> {
  signal.throwIfAborted();
  const child = spawn(program, args, { stdio: [feed === undefined ? "ignore" : "pipe", "ignore", "pipe"] });
  const stop = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < MAX_STDERR) stderr += text;
  });
  try {
    const closed = once(child, "close") as Promise<[number | null]>;
    const failure = await fed(child, feed);
    const [code] = await closed;
    signal.throwIfAborted();
    if (failure !== undefined && !(failure instanceof Refused)) throw failure;
    if (code !== 0)
      throw new CliError("unavailable", `The backup could not be extracted: ${stderr.trim() || `${program} failed`}.`);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Returns why the program could not be fed to the end, once its input is closed: it may still be at work. */
async function fed(child: ChildProcess, feed: Feed | undefined): Promise<Error | undefined> {
  if (feed === undefined) return undefined;
  // A program that has read enough closes its input. If it failed, its exit code says so.
  child.stdin?.on("error", () => {});
  try {
    await feed(child);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    child.stdin?.end();
  }
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
