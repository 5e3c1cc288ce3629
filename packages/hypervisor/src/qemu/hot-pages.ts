/**
 * The pages of memory that a guest needs right after a resume. The platform records them once the guest runs, and the
 * next resume reads them from the disk in large pieces while QEMU starts, which is faster than one by one as the guest
 * touches them. Record and prefetch: Ustiugov et al., "Benchmarking, Analysis, and Optimization of Serverless Function
 * Snapshots", ASPLOS 2021. The record is only a hint: without one, or with a wrong one, a resume is slower.
 */
import { type FileHandle, open, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PAGE, type PageRange, piecesOf, READ_BYTES, rangesOf, readPageRanges } from "@hibernaut/lib/page-ranges";
import { isPresent, mappingOf, pagesOf } from "./mapped-file.ts";

/** Two readers keep a disk busy and leave half of Node's threads for other files. */
const READERS = 2;
/** More pages than this are not what the resume needed but everything the guest did since; reading them takes too long. */
const MOST_PAGES = (128 * 1024 * 1024) / PAGE;
/** Single pages read to find out whether the memory is in the page cache, where reading ahead would only cost time. */
const PROBES = 16;
/**
 * The second fastest probe decides, because the start of QEMU slows most of them down. Through Node, a read takes 16 to
 * 55 us from the page cache and 75 us or more from a fast disk.
 */
const CACHED_READ_US = 60;
/** The file with the recorded pages: next to the memory, so that it outlives a guest and is deleted with the machine. */
export function hotPagesFile(memory: string): string {
  return join(dirname(memory), "hot-pages.json");
}

/**
 * Reads the recorded pages of `memory` into the page cache. Does nothing when `inCache` finds that they are there
 * already. Ends early when aborted. Never rejects.
 */
export async function readAhead(memory: string, signal: AbortSignal, inCache = seemsCached): Promise<void> {
  const ranges = await readPageRanges(hotPagesFile(memory));
  if (ranges.length === 0) return;
  const opened = await open(memory, "r").catch(() => undefined);
  try {
    if (opened !== undefined && !(await inCache(opened, ranges))) await readAll(opened, ranges, signal);
  } catch {
    // QEMU reports memory that cannot be read.
  } finally {
    await opened?.close().catch(() => {}); // it was only read
  }
}

async function seemsCached(memory: FileHandle, ranges: PageRange[]): Promise<boolean> {
  const page = Buffer.allocUnsafe(PAGE);
  const times: number[] = [];
  // Each range once, because a page that was just read is in the cache.
  const probes = Math.min(PROBES, ranges.length);
  for (let probe = 0; probe < probes; probe += 1) {
    const [from] = ranges[Math.floor((probe * ranges.length) / probes)] as PageRange;
    const began = performance.now();
    await memory.read(page, 0, PAGE, from * PAGE);
    times.push((performance.now() - began) * 1000);
  }
  const [, second = Number.POSITIVE_INFINITY] = times.sort((a, b) => a - b);
  return second < CACHED_READ_US;
}

async function readAll(memory: FileHandle, ranges: PageRange[], signal: AbortSignal): Promise<void> {
  const next = piecesOf(ranges);
  const reader = async () => {
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    for (const [from, to] of next) {
      if (signal.aborted) return;
      const { bytesRead } = await memory.read(buffer, 0, (to - from) * PAGE, from * PAGE);
      if (bytesRead === 0) return; // past the end of this memory, and so are all following ranges
    }
  };
  await Promise.all(Array.from({ length: READERS }, reader));
}

/** Records which pages of `memory` the process has touched so far. Rejects when the kernel does not reveal them. */
export async function recordHotPages(pid: number, memory: string): Promise<void> {
  const mapping = await mappingOf(pid, memory, (await stat(memory)).size);
  const pages = mapping === undefined ? [] : await pagesOf(pid, mapping, isPresent);
  if (pages.length > MOST_PAGES) return;
  const file = hotPagesFile(memory);
  await writeFile(`${file}.new`, JSON.stringify(rangesOf(pages)), { mode: 0o600 });
  await rename(`${file}.new`, file);
}
