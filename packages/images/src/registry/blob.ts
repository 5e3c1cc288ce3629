/** Downloads one blob. Continues after an interruption, even by `kill -9`, and verifies the digest of the whole blob. */
import { createHash, type Hash } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";
import { flush } from "@hibernaut/lib/durable";
import { hashOf, writeAll } from "../blob-file.ts";
import { isTransient, RegistryFault } from "./fault.ts";
import type { Descriptor } from "./manifest.ts";
import { type Patience, pause } from "./patience.ts";
import { bodyOf } from "./request.ts";
import type { Session } from "./session.ts";

/** One download. */
interface BlobDownload {
  session: Session;
  repository: string;
  blob: Descriptor;
  /** Path of the complete blob. An incomplete one is next to it, with `.part` at the end. */
  file: string;
  patience: Patience;
  signal: AbortSignal;
  /** Called with the number of bytes downloaded so far, including those of earlier attempts. */
  onProgress(doneBytes: number): void;
}

/** A connection that brings less than this before it breaks counts as one without progress. */
const PROGRESS_BYTES = 256 * 1024;

/** Resolves when the file is complete, verified and flushed to the disk. */
export async function downloadBlob(download: BlobDownload): Promise<void> {
  const { file, patience, signal } = download;
  const part = `${file}.part`;
  let failures = 0;
  for (;;) {
    const before = await sizeOf(part);
    try {
      await attempt(download, part);
      await rename(part, file);
      return;
    } catch (error) {
      if (!isTransient(error) || signal.aborted) throw error;
      failures = (await sizeOf(part)) - before >= PROGRESS_BYTES ? 1 : failures + 1;
      if (failures >= patience.tries) throw error;
      await pause(failures, error, patience, signal);
    }
  }
}

async function attempt(download: BlobDownload, part: string): Promise<void> {
  const { blob, signal } = download;
  let start = await sizeOf(part);
  if (start > blob.size) start = await discard(part);
  const { hash, resumed } = await fill(download, part, start);
  if (`sha256:${hash.digest("hex")}` === blob.digest) return flush(part);
  await discard(part);
  // A resumed download may contain damage from a power cut. One that came in one piece is what the registry has.
  const reason = `the layer ${blob.digest} does not match its digest`;
  throw new RegistryFault(resumed && !signal.aborted ? "transient" : "invalid", reason);
}

/** Downloads the rest of the part. Returns the hash of the whole. */
async function fill(
  { session, repository, blob, patience, signal, onProgress }: BlobDownload,
  part: string,
  from: number,
): Promise<{ hash: Hash; resumed: boolean }> {
  if (from === blob.size && from > 0) {
    onProgress(from);
    return { hash: await hashOf(part), resumed: true };
  }
  // From this byte, counted from 0, to the end (RFC 9110, section 14.2; distribution-spec, "Pulling blobs").
  const range: Record<string, string> = from > 0 ? { range: `bytes=${from}-` } : {};
  const response = await session.get(`${repository}/blobs/${blob.digest}`, range, signal);
  // A server that does not support ranges sends everything: start from the beginning.
  const start = from > 0 && response.statusCode === 206 ? from : 0;
  if (response.statusCode === 416 || (start > 0 && rangeStart(response.headers["content-range"]) !== start)) {
    response.destroy();
    await discard(part);
    throw new RegistryFault("transient", "it did not resume the download where it was interrupted");
  }
  const hash = start > 0 ? await hashOf(part) : createHash("sha256");
  await using handle = await open(part, start > 0 ? "r+" : "w", 0o600);
  let at = start;
  onProgress(at);
  for await (const chunk of bodyOf(response, patience, signal)) {
    if (at + chunk.length > blob.size) {
      await discard(part);
      throw new RegistryFault(
        "invalid",
        `the layer ${blob.digest} is larger than the ${blob.size} bytes it should have`,
      );
    }
    await writeAll(handle, chunk, at);
    hash.update(chunk);
    at += chunk.length;
    onProgress(at);
  }
  if (at < blob.size) throw new RegistryFault("transient", `the connection ended after ${at} of ${blob.size} bytes`);
  return { hash, resumed: start > 0 };
}

/** Returns where a range begins: 100 for `bytes 100-199/200`. */
function rangeStart(header: string | undefined): number {
  return Number(/^bytes (\d+)-/.exec(header ?? "")?.[1] ?? Number.NaN);
}

async function sizeOf(file: string): Promise<number> {
  return stat(file).then(
    ({ size }) => size,
    () => 0,
  );
}

async function discard(part: string): Promise<0> {
  await rm(part, { force: true });
  return 0;
}
