/**
 * The pages of its memory that a guest needs right after it woke. They are noted once it runs, and the next wake reads
 * them from the disk in large pieces while QEMU starts; one by one, as the guest comes across them, that takes longer.
 * Record and prefetch: Ustiugov et al., "Benchmarking, Analysis, and Optimization of Serverless Function Snapshots",
 * ASPLOS 2021. A hint and nothing more: without it, or with a wrong one, a wake is slower.
 */
import { type FileHandle, open, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Type } from "typebox";
import { Value } from "typebox/value";

/** Pages from the first up to, and without, the second, counted from the memory's beginning. */
export type Range = [from: number, to: number];

const Ranges = Type.Array(Type.Tuple([Type.Integer({ minimum: 0 }), Type.Integer({ minimum: 0 })]), {
  maxItems: 100_000,
});
const PAGE = 4096;
/** A gap of so few pages is read along: that is cheaper than another read. */
const SMALL_GAP = 8;
/** Of a range, so much is read at a time. */
const PIECE_PAGES = 256;
/** Two keep a disk busy, and leave half of Node's threads to those who need a file now. */
const READERS = 2;
/** More than this is no wake's need but all that a guest had to do by then; reading it would outlast the wake. */
const MOST_PAGES = (128 * 1024 * 1024) / PAGE;
/** So many single pages tell whether the memory is in the page cache, where reading ahead would only cost time. */
const PROBES = 16;
/**
 * The second fastest of them decides, because a CPU that starts QEMU meanwhile slows down most: it takes 16 to 55 us
 * from the cache, with the way through Node, and 75 or more from a fast disk.
 */
const CACHED_READ_US = 60;
/** Entries of /proc/PID/pagemap that are read at a time, 8 bytes each. */
const ENTRIES = 32_768;
const ENTRY_BYTES = 8;
/** Bit 63 of an entry, in its highest byte: the page is in memory (https://docs.kernel.org/admin-guide/mm/pagemap.html). */
const PRESENT = 0x80;

/** Where the pages of a memory are noted: beside it, so that they outlive it and end with the machine. */
function fileOf(memory: string): string {
  return join(dirname(memory), "hot-pages.json");
}

/** The ranges in `file`; none when there is no such file, or something else is in it. */
async function readRanges(file: string): Promise<Range[]> {
  try {
    const ranges: unknown = JSON.parse(await readFile(file, "utf8"));
    return Value.Check(Ranges, ranges) ? ranges : [];
  } catch {
    return [];
  }
}

/**
 * Reads the pages from `memory` that were noted, so that they are in the page cache; nothing when they are there
 * already, as far as `inCache` can tell. Ends early when aborted. Never rejects.
 */
export async function readAhead(memory: string, signal: AbortSignal, inCache = seemsCached): Promise<void> {
  const ranges = await readRanges(fileOf(memory));
  if (ranges.length === 0) return;
  const opened = await open(memory, "r").catch(() => undefined);
  try {
    if (opened !== undefined && !(await inCache(opened, ranges))) await readAll(opened, ranges, signal);
  } catch {
    // What cannot be read ahead is QEMU's to report.
  } finally {
    await opened?.close().catch(() => {}); // it was only read
  }
}

async function seemsCached(memory: FileHandle, ranges: Range[]): Promise<boolean> {
  const page = Buffer.allocUnsafe(PAGE);
  const times: number[] = [];
  // Each range once: a page that was just read is in the cache.
  const probes = Math.min(PROBES, ranges.length);
  for (let probe = 0; probe < probes; probe += 1) {
    const [from] = ranges[Math.floor((probe * ranges.length) / probes)] as Range;
    const began = performance.now();
    await memory.read(page, 0, PAGE, from * PAGE);
    times.push((performance.now() - began) * 1000);
  }
  const [, second = Number.POSITIVE_INFINITY] = times.sort((a, b) => a - b);
  return second < CACHED_READ_US;
}

async function readAll(memory: FileHandle, ranges: Range[], signal: AbortSignal): Promise<void> {
  const next = piecesOf(ranges);
  const reader = async () => {
    const buffer = Buffer.allocUnsafeSlow(PIECE_PAGES * PAGE);
    for (const [from, to] of next) {
      if (signal.aborted) return;
      const { bytesRead } = await memory.read(buffer, 0, (to - from) * PAGE, from * PAGE);
      if (bytesRead === 0) return; // no page of this memory, nor is any that follows
    }
  };
  await Promise.all(Array.from({ length: READERS }, reader));
}

function* piecesOf(ranges: Range[]): Generator<Range> {
  for (const [from, to] of ranges)
    for (let start = from; start < to; start += PIECE_PAGES) yield [start, Math.min(start + PIECE_PAGES, to)];
}

/** Notes which pages of `memory` the process has come across so far. Rejects when the kernel does not tell. */
export async function noteHotPages(pid: number, memory: string): Promise<void> {
  const pages = await pagesOf(pid, memory);
  if (pages.length > MOST_PAGES) return;
  const file = fileOf(memory);
  await writeFile(`${file}.new`, JSON.stringify(rangesOf(pages)), { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** Joins ascending pages to ranges, over small gaps. */
export function rangesOf(pages: Iterable<number>): Range[] {
  const ranges: Range[] = [];
  for (const page of pages) {
    const last = ranges.at(-1);
    if (last !== undefined && page - last[1] <= SMALL_GAP) last[1] = page + 1;
    else ranges.push([page, page + 1]);
  }
  return ranges;
}

/** The pages of a file that a process has mapped and come across, in ascending order. */
async function pagesOf(pid: number, mapped: string): Promise<number[]> {
  const maps = await readFile(`/proc/${pid}/maps`, "utf8");
  const [begin = 0, end = 0] =
    maps
      .split("\n")
      .find((line) => line.endsWith(` ${mapped}`))
      ?.match(/^([0-9a-f]+)-([0-9a-f]+) /)
      ?.slice(1)
      .map((address) => Number.parseInt(address, 16) / PAGE) ?? [];
  const pages: number[] = [];
  const table = await open(`/proc/${pid}/pagemap`, "r");
  try {
    const entries = Buffer.allocUnsafe(ENTRIES * ENTRY_BYTES);
    for (let first = begin; first < end; first += ENTRIES) {
      const wanted = Math.min(ENTRIES, end - first) * ENTRY_BYTES;
      const { bytesRead } = await table.read(entries, 0, wanted, first * ENTRY_BYTES);
      for (let at = 0; at < bytesRead; at += ENTRY_BYTES)
        if (((entries[at + ENTRY_BYTES - 1] as number) & PRESENT) !== 0) pages.push(first - begin + at / ENTRY_BYTES);
    }
  } finally {
    await table.close();
  }
  return pages;
}
