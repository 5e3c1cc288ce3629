/** Receives bytes of a blob into its file. What arrived stays, however the connection ends. */
import { open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import { HibernautError } from "@hibernaut/domain/errors";
import { ifAbsent } from "@hibernaut/lib/absence";
import { flush } from "@hibernaut/lib/durable";
import { hashOf, writeAll } from "../blob-file.ts";
import type { Descriptor } from "../registry/manifest.ts";

/** One request with bytes. */
interface Reception {
  blob: Descriptor;
  /** Path of the complete blob. An incomplete one is next to it, with `.part` at the end, as for a download. */
  file: string;
  /** How many bytes the client believes to have sent before. */
  offset: number;
  bytes: Readable;
  /** End after so long without a byte, in milliseconds. */
  stallMs: number;
}

/** Returns how many bytes of a blob there are: its size if it is complete. */
export async function receivedBytes(file: string, blob: Descriptor): Promise<number> {
  const whole = await lengthOf(file);
  if (whole !== undefined) return blob.size;
  const part = (await lengthOf(`${file}.part`)) ?? 0;
  // A part with all bytes has not been checked: the platform ended in between. It is checked with the next request.
  return Math.min(part, Math.max(0, blob.size - 1));
}

/**
 * Appends bytes to a blob, and publishes the blob when it has all of them and they match its digest. Returns how many
 * bytes it has. Nothing else may write to the blob meanwhile.
 */
export async function receive({ blob, file, offset, bytes, stallMs }: Reception): Promise<number> {
  const have = await receivedBytes(file, blob);
  if (have !== offset) throw elsewhere(blob, have);
  if (have === blob.size && (await lengthOf(file)) !== undefined) return have;
  const part = `${file}.part`;
  const end = await write({ blob, part, offset, bytes, stallMs });
  if (end < blob.size) return end;
  await publish(blob, part, file);
  return end;
}

async function write({ blob, part, offset, bytes, stallMs }: Omit<Reception, "file"> & { part: string }) {
  await using handle = await open(part, offset > 0 ? "r+" : "w", 0o600);
  await handle.truncate(offset);
  let at = offset;
  const stalled = setTimeout(() => bytes.destroy(silence(blob, at, stallMs)), stallMs);
  try {
    for await (const chunk of bytes as AsyncIterable<Buffer>) {
      if (at + chunk.length > blob.size) {
        await handle.truncate(offset);
        throw tooMany(blob, offset);
      }
      await writeAll(handle, chunk, at);
      at += chunk.length;
      stalled.refresh();
    }
    return at;
  } catch (error) {
    if (error !== bytes.errored || error instanceof HibernautError) throw error;
    throw brokenOff(blob, at, error);
  } finally {
    clearTimeout(stalled);
  }
}

/** Reads the blob back, so that what counts is what is in the file, whichever requests and platforms wrote it. */
async function publish(blob: Descriptor, part: string, file: string): Promise<void> {
  if ((await digestOfFile(part)) !== blob.digest) {
    await rm(part, { force: true });
    throw damaged(blob);
  }
  await flush(part);
  await rename(part, file);
  await flush(dirname(file));
}

/** Returns the digest of what is in a file, as registries write it. */
export async function digestOfFile(file: string): Promise<string> {
  return `sha256:${(await hashOf(file)).digest("hex")}`;
}

async function lengthOf(file: string): Promise<number | undefined> {
  return stat(file).then(({ size }) => size, ifAbsent(undefined));
}

function elsewhere({ digest }: Descriptor, offset: number): HibernautError {
  const message = `The platform has ${offset} bytes of the blob ${digest}. Continue from there.`;
  return new HibernautError("aborted", message, { digest, offset });
}

function brokenOff({ digest }: Descriptor, offset: number, cause: unknown): HibernautError {
  const message = `The upload of the blob ${digest} broke off after ${offset} bytes. Continue from there.`;
  return new HibernautError("aborted", message, { digest, offset }, { cause });
}

function silence({ digest }: Descriptor, offset: number, stallMs: number): HibernautError {
  const message = `No byte of the blob ${digest} came for ${stallMs / 1000} s. Continue after ${offset} bytes when the network is better.`;
  return new HibernautError("deadline_exceeded", message, { digest, offset });
}

function tooMany({ digest, size }: Descriptor, offset: number): HibernautError {
  const message = `The blob ${digest} has ${size} bytes according to the manifest, and more were sent. Nothing of this request was kept. Send the bytes of the image that the manifest describes.`;
  return new HibernautError("invalid_argument", message, { digest, offset });
}

function damaged({ digest }: Descriptor): HibernautError {
  const message = `The bytes of the blob ${digest} do not match its digest, so they were deleted. Check the image on your disk, then send the blob again from the beginning.`;
  return new HibernautError("invalid_argument", message, { digest, offset: 0 });
}
