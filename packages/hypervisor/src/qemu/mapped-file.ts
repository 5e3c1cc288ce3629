/** A file that a process has mapped, and what the kernel tells about its pages. */
import { open, readFile } from "node:fs/promises";
import { PAGE } from "@hibernaut/lib/page-ranges";

/** Entries of /proc/PID/pagemap read at a time, 8 bytes each. */
const ENTRIES = 32_768;
const ENTRY_BYTES = 8;
/** What the highest byte of an entry says (https://docs.kernel.org/admin-guide/mm/pagemap.html). Bits 63, 62 and 61. */
const PRESENT = 0x80;
const SWAPPED = 0x40;
const IN_A_FILE = 0x20;

/** A mapping of a whole file, in pages of the process: from `begin` up to but not including `end`. */
export interface Mapping {
  begin: number;
  end: number;
  /** Of the file, which may have another name by now, or none. */
  inode: number;
}

/** The page is in memory. */
export function isPresent(highest: number): boolean {
  return (highest & PRESENT) !== 0;
}

/**
 * The process has written to this page of a private mapping: what it sees there is not in the file. Where the kernel does not
 * say that a page is the file's, it counts as written to.
 */
export function isOwn(highest: number): boolean {
  return (highest & (PRESENT | SWAPPED)) !== 0 && (highest & IN_A_FILE) === 0;
}

/**
 * Finds the mapping of a file, by the path that it was opened with, in what /proc/PID/maps says. Pure. Several that follow
 * one another are one. Undefined when there is none.
 */
export function mappingIn(maps: string, path: string): Mapping | undefined {
  let found: Mapping | undefined;
  for (const line of maps.split("\n")) {
    if (!isOf(line, path)) continue;
    const [, from = "", to = "", inode = ""] = /^([0-9a-f]+)-([0-9a-f]+) \S+ [0-9a-f]+ \S+ (\d+) /.exec(line) ?? [];
    const [begin, end] = [from, to].map((address) => Number.parseInt(address, 16) / PAGE) as [number, number];
    if (found !== undefined && (found.end !== begin || found.inode !== Number(inode)))
      throw new Error(`${path} is mapped in several places`);
    found = { begin: found?.begin ?? begin, end, inode: Number(inode) };
  }
  return found;
}

/**
 * Adds up what a process has in private mappings of a file that is not the file's any more, in bytes, from what /proc/PID/smaps
 * says. Pure.
 */
export function anonymousIn(smaps: string, path: string): number {
  let bytes = 0;
  let within = false;
  for (const line of smaps.split("\n")) {
    if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) within = isOf(line, path);
    else if (within) bytes += 1024 * Number(/^Anonymous:\s+(\d+) kB$/.exec(line)?.[1] ?? 0);
  }
  return bytes;
}

/** Whether a line that begins a mapping, in /proc/PID/maps or smaps, is of the file that was opened with this path. */
function isOf(line: string, path: string): boolean {
  return line.endsWith(` ${path}`) || line.endsWith(` ${path} (deleted)`);
}

/**
 * Finds the mapping of a file that has `bytes` bytes. The process may be a QEMU that a guest has taken over: rejects when it
 * has mapped more of the file, or less, than that.
 */
export async function mappingOf(pid: number, path: string, bytes: number): Promise<Mapping | undefined> {
  const found = mappingIn(await readFile(`/proc/${pid}/maps`, "utf8"), path);
  if (found === undefined || (found.end - found.begin) * PAGE === bytes) return found;
  throw new Error(`process ${pid} has mapped ${(found.end - found.begin) * PAGE} bytes of a memory of ${bytes}`);
}

/** Lists the pages of a mapping, counted from its beginning, of whose entry's highest byte `wanted` holds. Ascending. */
export async function pagesOf(
  pid: number,
  { begin, end }: Mapping,
  wanted: (highest: number) => boolean,
): Promise<number[]> {
  const pages: number[] = [];
  await using table = await open(`/proc/${pid}/pagemap`, "r");
  const entries = Buffer.allocUnsafe(ENTRIES * ENTRY_BYTES);
  for (let first = begin; first < end; first += ENTRIES) {
    const length = Math.min(ENTRIES, end - first) * ENTRY_BYTES;
    const { bytesRead } = await table.read(entries, 0, length, first * ENTRY_BYTES);
    if (bytesRead < length) throw new Error(`process ${pid} has ended`);
    for (let at = 0; at < length; at += ENTRY_BYTES)
      if (wanted(entries[at + ENTRY_BYTES - 1] as number)) pages.push(first - begin + at / ENTRY_BYTES);
  }
  return pages;
}
