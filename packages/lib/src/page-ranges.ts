/** Ranges of pages in a file, such as those of a guest's memory that the last wake needed. */
import { readFile } from "node:fs/promises";
import { Type } from "typebox";
import { Value } from "typebox/value";

/** Pages from `from` up to but not including `to`, counted from the beginning of the file. */
export type PageRange = [from: number, to: number];

/** Bytes of a page. */
export const PAGE = 4096;
/** Pages read at a time: 1 MiB. */
const PIECE_PAGES = 256;
/** Bytes of the largest piece. */
export const READ_BYTES = PIECE_PAGES * PAGE;
/** Gaps of up to this many pages are read too, because that is cheaper than another read. */
const SMALL_GAP = 8;

const Ranges = Type.Array(Type.Tuple([Type.Integer({ minimum: 0 }), Type.Integer({ minimum: 0 })]), {
  maxItems: 100_000,
});

/** Reads a JSON list of ranges. Returns none when the file does not exist or is not valid. */
export async function readPageRanges(file: string): Promise<PageRange[]> {
  try {
    const ranges: unknown = JSON.parse(await readFile(file, "utf8"));
    return Value.Check(Ranges, ranges) ? ranges : [];
  } catch {
    return [];
  }
}

/** Cuts ranges into pieces of at most 1 MiB. */
export function* piecesOf(ranges: Iterable<PageRange>): Generator<PageRange> {
  for (const [from, to] of ranges)
    for (let start = from; start < to; start += PIECE_PAGES) yield [start, Math.min(start + PIECE_PAGES, to)];
}

/** Joins ascending pages into ranges, across small gaps. */
export function rangesOf(pages: Iterable<number>): PageRange[] {
  const ranges: PageRange[] = [];
  for (const page of pages) {
    const last = ranges.at(-1);
    if (last !== undefined && page - last[1] <= SMALL_GAP) last[1] = page + 1;
    else ranges.push([page, page + 1]);
  }
  return ranges;
}
