/** Makes the base image of sandboxes from the packages of the host's mirror. No registry is involved. */
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { flush } from "@hibernaut/lib/durable";
import { runUntilAborted } from "@hibernaut/lib/exec";
import { mmdebstrapArguments } from "./arguments.ts";
import { baseDocuments, blobPath } from "./image.ts";
import { runMmdebstrap } from "./run.ts";
import { distributionOf, sourceLines } from "./sources.ts";

interface BaseOptions {
  /** The archive to make. Replaces a file that exists, and only when it is complete. */
  out: string;
  signal: AbortSignal;
  /** Gets what happens, line by line. */
  onLine(line: string): void;
  /** Default: mmdebstrap. Tests replace it. */
  program?: string;
}

/** Not /tmp, which is memory on many hosts. */
const SCRATCH = process.env.TMPDIR ?? "/var/tmp";
const APT = "/etc/apt";

/**
 * Makes the base image as an archive for `oci-archive:<out>`: about 300 MB, in about a minute. In between it needs twice as
 * much next to `out`, and as much in TMPDIR, by default /var/tmp. Returns the size of the archive, and the image's digest.
 *
 * Rejects with `failed_precondition` when mmdebstrap is missing, with `unavailable` and its last lines when it fails, and
 * with the signal's reason when that is aborted. What was made until then is removed.
 *
 * @example
 * await buildBase({ out: "/var/lib/hibernaut/base.tar", signal, onLine: (line) => console.error(line) });
 */
export async function buildBase({ out, signal, onLine, program }: BaseOptions): Promise<{
  bytes: number;
  digest: string;
}> {
  signal.throwIfAborted();
  await mkdir(dirname(out), { recursive: true });
  const work = await mkdtemp(`${out}.tmp-`);
  const scratch = await mkdtemp(join(SCRATCH, "hibernaut-base-")).catch(async (error: unknown) => {
    await rm(work, { recursive: true });
    throw error;
  });
  try {
    // Without root, mmdebstrap works as a user that has no rights in a private directory.
    await chmod(scratch, 0o755);
    const run = { out: join(work, "layer.tar"), scratch, signal, onLine, ...(program !== undefined && { program }) };
    const layer = await runMmdebstrap(await argumentsForHost(), run);
    onLine("packing the image");
    const { digest, documents } = baseDocuments(layer, new Date());
    const layout = join(work, "layout");
    await mkdir(join(layout, "blobs/sha256"), { recursive: true });
    await rename(run.out, join(layout, blobPath(layer.digest)));
    for (const { path, text } of documents) await writeFile(join(layout, path), text);
    const draft = join(work, "base.tar");
    await pack(layout, draft, signal);
    await flush(draft);
    await rename(draft, out);
    return { bytes: (await stat(out)).size, digest };
  } finally {
    // mmdebstrap has removed its own files, which may belong to others.
    await Promise.allSettled([work, scratch].map((folder) => rm(folder, { recursive: true, force: true })));
  }
}

async function argumentsForHost(): Promise<string[]> {
  const distribution = distributionOf(await textOf("/etc/os-release"));
  const found: string[] = await readdir(join(APT, "sources.list.d")).catch(() => []);
  const names = found.toSorted();
  const texts = (suffix: string) =>
    Promise.all(names.filter((name) => name.endsWith(suffix)).map((name) => textOf(join(APT, "sources.list.d", name))));
  const oneLine = [await textOf(join(APT, "sources.list")), ...(await texts(".list"))];
  const sources = sourceLines({ oneLine, deb822: await texts(".sources") }, distribution);
  return mmdebstrapArguments({ root: process.getuid?.() === 0, distribution, sources });
}

/** The text of a file; empty when there is none, or it is not for us to read. */
function textOf(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}

async function pack(layout: string, out: string, signal: AbortSignal): Promise<void> {
  const owner = ["--owner=0", "--group=0", "--numeric-owner"];
  const args = ["--create", `--file=${out}`, ...owner, `--directory=${layout}`, "--"];
  // The first entry tells a reader what the archive is.
  await runUntilAborted("tar", [...args, "oci-layout", "index.json", "blobs"], signal);
}
