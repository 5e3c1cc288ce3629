/**
 * Reads a sleeping memory from the disk, slowly, and compares it with its seal. It reads past the page cache, where it
 * can: what counts is what the disk holds, and the memory of other machines should stay cached.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { constants as os, setPriority } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { READ_BYTES } from "@hibernaut/lib/page-ranges";
import { differing, type Seal } from "./seal.ts";

export interface ScrubOptions {
  /** Bytes per second. */
  rate: number;
  signal: AbortSignal;
}

/**
 * Reads all of the file. Returns where it differs from the seal, and undefined when it does not. Rejects when aborted,
 * or when the file cannot be read: the disk may be able to again, so nothing should be discarded for that.
 */
export async function scrub(
  path: string,
  { chunks, file }: Seal,
  { rate, signal }: ScrubOptions,
): Promise<string | undefined> {
  // Node cannot align its buffers as direct reads demand; dd does.
  const flags = (await readsDirectly(path)) ? ["iflag=direct"] : [];
  const reader = spawn("dd", [`if=${path}`, "bs=1M", "status=none", ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
    signal,
  });
  const ended = once(reader, "close") as Promise<[number | null]>;
  ended.catch(() => {}); // reported below
  if (reader.pid !== undefined) lowerPriority(reader.pid);
  let said = "";
  reader.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-500)));
  const sums: number[] = [];
  let bytes = 0;
  const began = performance.now();
  for await (const part of reader.stdout as AsyncIterable<Buffer>) {
    for (let at = 0; at < part.length; ) {
      const chunk = Math.floor(bytes / READ_BYTES);
      const piece = part.subarray(at, at + (chunk + 1) * READ_BYTES - bytes);
      sums[chunk] = crc32(piece, sums[chunk] ?? 0);
      at += piece.length;
      bytes += piece.length;
    }
    const aheadMs = (bytes / rate) * 1000 - (performance.now() - began);
    if (aheadMs > PAUSE_MS) await delay(aheadMs, undefined, { signal });
  }
  const [code] = await ended;
  signal.throwIfAborted();
  if (code !== 0) throw new Error(`the memory file cannot be read: ${said.trim()}`);
  if (bytes !== file.size) return `the memory file has ${bytes} bytes instead of ${file.size}`;
  return differing(chunks, sums);
}

/** Shorter waits cost more than they spread the load. */
const PAUSE_MS = 20;

async function readsDirectly(path: string): Promise<boolean> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_DIRECT);
    await file.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EINVAL") return false;
    throw error;
  }
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, os.priority.PRIORITY_LOW);
  } catch {
    // It has ended already.
  }
}
