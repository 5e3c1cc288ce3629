/** Extracts the archives of a backup, each over the ones before, into a directory that nobody else writes to. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";

/** More complaints than these don't explain the failure better. Characters. */
const MAX_STDERR = 4096;

/** How tar extracts an archive of ours: permissions, holes, and without the checksum of an archive that is a file. */
export const EXTRACT = ["--extract", "--preserve-permissions", "--sparse", "--exclude=backup.sha256"] as const;

/** A tar archive that throws at its end, or before, if it is damaged. */
export type Archive = AsyncIterable<Buffer>;
/** Gives a program its input. */
export type Feed = (child: ChildProcess) => Promise<void>;

/** The program that is fed has failed, and its exit code and its complaints say why. */
class Refused extends HibernautError {}

/** Extracts an archive. Rejects with what it throws, with `unavailable` when tar fails, and with the signal's reason. */
export async function extractArchive(archive: Archive, directory: string, signal: AbortSignal): Promise<void> {
  const feed: Feed = async (child) => {
    for await (const chunk of archive) await give(child, chunk);
  };
  await runTool("tar", [...EXTRACT, "--file=-", `--directory=${directory}`], signal, feed);
  await requireNoLinks(directory);
}

/** Makes what was extracted durable. */
export async function flushExtracted(directory: string, signal: AbortSignal): Promise<void> {
  await runTool("sync", ["--file-system", directory], signal);
}

/** A link of one archive would lead the files of the next one elsewhere, and platforms back up no devices. */
async function requireNoLinks(directory: string): Promise<void> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const strange = entries.find((entry) => !entry.isFile() && !entry.isDirectory());
  if (strange === undefined) return;
  const path = join(strange.parentPath, strange.name);
  throw new HibernautError(
    "unavailable",
    `The backup has something at ${path} that is neither a file nor a directory, which no platform has made. Nothing was restored.`,
  );
}

/** Gives a program a chunk of its input. `tar` stops reading at the end of the archive: what follows it is only checked. */
export async function give(child: ChildProcess, chunk: Buffer): Promise<void> {
  if (child.exitCode !== null && child.exitCode !== 0) throw new Refused("unavailable", "tar failed");
  const { stdin } = child;
  if (stdin?.writable && !stdin.write(chunk)) {
    const waiting = new AbortController();
    const { signal } = waiting;
    const next = Promise.race([once(stdin, "drain", { signal }), once(stdin, "close", { signal })]);
    // It may have read enough: its exit code says whether it failed.
    await next.catch(() => {});
    waiting.abort();
  }
}

/** Runs a program, with an input if there is a feed. Rejects with `unavailable` and its complaints when it fails. */
export async function runTool(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
  feed?: Feed,
): Promise<void> {
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
      throw new HibernautError(
        "unavailable",
        `The backup could not be extracted: ${stderr.trim() || `${program} failed`}.`,
      );
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
