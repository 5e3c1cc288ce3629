/** The files of a machine as an archive, and back: GNU tar knows holes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { allocatedBytes } from "@hibernaut/lib/disk-files";
import { flush } from "@hibernaut/lib/durable";
import { programEnvironment } from "@hibernaut/lib/exec";

/** `tar` reads and writes as much at a time as a pipe holds, 64 KB instead of 10: each time, the other end has to wake up. */
const RECORDS = "--blocking-factor=128";
/** How often what has arrived is flushed while the rest is on its way, in milliseconds. */
const FLUSH_MS = 50;
/** More of what `tar` complains about does not explain its failure better. Characters. */
const MAX_STDERR = 16_384;

interface PackedFiles {
  /** Relative to the machine's directory. */
  paths: string[];
  /** About what has to be read, in bytes: what they take up on the disk, and all of the memory. */
  bytes: number;
}

/** Finds what of a machine travels: its layer, its snapshot and its logs. Its memory is in the snapshot. */
export async function filesOf(folder: string, { snapshot }: Pick<MachineRecord, "snapshot">): Promise<PackedFiles> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      // A machine that never ran has none. Anything else must not look like an empty machine.
      if (error.code === "ENOENT") return [];
      throw error;
    },
  );
  const paths = found
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((path) => travels(path, snapshot?.generation))
    .sort();
  const memory = memoryOf({ snapshot });
  const bytesOf = async (path: string) => {
    const file = await stat(join(folder, path));
    return path === memory ? file.size : allocatedBytes(file);
  };
  const sizes = await Promise.all(paths.map(bytesOf));
  return { paths, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

/** Where the memory of a resting machine is, among its files. Undefined when it has none. */
export function memoryOf({ snapshot }: Pick<MachineRecord, "snapshot">): string | undefined {
  return snapshot === null ? undefined : `snapshots/${snapshot.generation}/memory`;
}

/** Of a snapshot. Its seal describes the file as this host sees it. */
const SNAPSHOT_FILES = ["memory", "devices", "manifest.json"];

/** Whether a file belongs to the machine wherever it is. Pure. */
export function travels(path: string, generation: string | undefined): boolean {
  if (path === "memory" || path.startsWith("memory.") || path.endsWith(".new")) return false;
  if (!path.startsWith("snapshots/")) return true;
  return SNAPSHOT_FILES.some((name) => path === `snapshots/${generation}/${name}`);
}

/** Files of one directory. */
export interface Part {
  /** Absolute path. */
  folder: string;
  /** Relative to the directory. */
  paths: readonly string[];
}

/** Yields the files of several directories as one archive. `onBytes` is told how many bytes went in. Rejects with the signal's reason. */
export async function* pack(
  parts: readonly Part[],
  { signal, onBytes }: { signal: AbortSignal; onBytes(bytes: number): void },
): AsyncGenerator<Buffer, void> {
  signal.throwIfAborted();
  const args = ["--create", "--file=-", RECORDS, "--sparse", "--format=gnu", "--numeric-owner"];
  // A directory holds for the names after it, of which none looks like an option.
  const named = parts.flatMap(({ folder, paths }) =>
    paths.length === 0 ? [] : [`--directory=${folder}`, ...paths.map((path) => `./${path}`)],
  );
  // An archive without any file is one, too.
  const tar = program([...args, ...(named.length === 0 ? ["--files-from=/dev/null"] : named)], "out", signal);
  try {
    for await (const piece of tar.stdout as AsyncIterable<Buffer>) {
      signal.throwIfAborted();
      onBytes(piece.length);
      yield piece;
    }
    await tar.ended();
  } finally {
    tar.kill();
  }
}

/** Extracts such an archive into a new directory. It is durable only after {@link flushAll}. Rejects when a flush on the way has failed. */
export async function unpack(folder: string, archive: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const args = ["--extract", "--file=-", RECORDS, "--sparse", "--numeric-owner", `--directory=${folder}`];
  const tar = program(args, "in", signal);
  const over = new AbortController();
  // The disk works while the rest arrives, so that little is left for the end.
  const flushing = flushAlong(folder, over.signal);
  flushing.catch(() => {}); // the end of this function tells
  try {
    await pipeline(archive, intoTar(tar.stdin as Writable), { signal });
    await tar.ended();
  } catch (error) {
    signal.throwIfAborted();
    throw tar.complaint() ?? error;
  } finally {
    over.abort();
    await flushing.catch(() => {});
    tar.kill();
  }
  await flushing;
}

/**
 * Flushes what is in a directory again and again. Rejects with the first error of the disk: the kernel reports a write that
 * failed once, so the last flush may know nothing of it.
 */
async function flushAlong(folder: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await delay(FLUSH_MS, undefined, { signal }).catch(() => {});
    if (!signal.aborted) await flushPresent(folder);
  }
}

/** Flushes what there is in a directory. `tar` renames and removes files meanwhile. */
async function flushPresent(folder: string): Promise<void> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch(unlessGone);
  for (const entry of found ?? []) await flush(join(entry.parentPath, entry.name)).catch(unlessGone);
}

function unlessGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

/** `tar` reads no further than the end of the archive, and what is padded after that goes nowhere. */
function intoTar(stdin: Writable): Writable {
  let open = true;
  const close = () => (open = false);
  stdin.once("error", close);
  stdin.once("close", close);
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (open) stdin.write(chunk, () => done());
      else done();
    },
    final(done) {
      if (open) stdin.end(() => done());
      else done();
    },
  });
}

/** Flushes everything in a directory to the disk. */
export async function flushAll(folder: string): Promise<void> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  for (const entry of found) await flush(join(entry.parentPath, entry.name));
  await flush(folder);
}

function program(args: string[], direction: "in" | "out", signal: AbortSignal) {
  const child = spawn("tar", args, {
    stdio: [direction === "in" ? "pipe" : "ignore", direction === "out" ? "pipe" : "ignore", "pipe"],
    env: { ...programEnvironment(), LC_ALL: "C" },
  });
  const closed = once(child, "close") as Promise<[number | null]>;
  closed.catch(() => {});
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < MAX_STDERR) stderr += text;
  });
  const kill = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  void closed.then(
    () => signal.removeEventListener("abort", kill),
    () => signal.removeEventListener("abort", kill),
  );
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    kill,
    complaint: () => (stderr === "" ? undefined : new Error(`tar failed: ${stderr.trim()}`)),
    async ended(): Promise<void> {
      const [code] = await closed;
      signal.throwIfAborted();
      if (code !== 0) throw new Error(`tar ended with code ${code}: ${stderr.trim()}`);
    },
  };
}
