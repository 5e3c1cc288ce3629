/** Reads a log's files, forward and backward, one block at a time: never a whole file in memory. */
import { type FileHandle, open } from "node:fs/promises";
import { ifAbsent } from "@hibernaut/lib/absence";
import { decodeEntry, type LogEntry, shownEntry } from "./entry.ts";
import { LINE_FEED } from "./lines.ts";
import { MAX_ENTRY_BYTES, type Position, segmentPath } from "./segments.ts";

/** Large enough for the longest entry. */
const BLOCK_BYTES = MAX_ENTRY_BYTES;
/** The first block from the end of a log; each further block is twice as large. Most readers want a few lines, of many machines perhaps. */
const FIRST_BLOCK_BYTES = 16_384;
const SKIPPED =
  "Lines may be missing here: older ones were deleted, to make room for newer ones, before they were read.";

export interface PlacedEntry {
  entry: LogEntry;
  position: Position;
}

/** Returns the entries between two positions, in blocks, and says in between what was deleted meanwhile. */
export async function* readForwards(folder: string, from: Position, to: Position): AsyncGenerator<LogEntry[], void> {
  let { segment, offset } = from;
  let missing = false;
  while (segment < to.segment || (segment === to.segment && offset < to.offset)) {
    await using file = await openSegment(folder, segment);
    if (file === undefined) {
      missing = true;
      // Only the last two files can exist: the others were deleted in order.
      segment = Math.max(segment + 1, to.segment - 1);
      offset = 0;
      continue;
    }
    const end = segment === to.segment ? to.offset : (await file.stat()).size;
    while (offset < end) {
      const block = await readBlock(file, offset, Math.min(end, offset + BLOCK_BYTES));
      if (block.length === 0) break;
      // A line without an end is damaged, and the last of its file.
      const size = block.lastIndexOf(LINE_FEED) + 1 || block.length;
      const entries = decodeAll(block.subarray(0, size), { segment, offset }).map(({ entry }) => entry);
      offset += size;
      if (missing && entries[0] !== undefined) {
        entries.unshift({ ...entries[0], stream: "platform", text: SKIPPED });
        missing = false;
      }
      yield entries;
    }
    segment += 1;
    offset = 0;
  }
}

/** Returns the entries before a position, newest first, in blocks. */
export async function* readBackwards(folder: string, before: Position): AsyncGenerator<PlacedEntry[], void> {
  let size = FIRST_BLOCK_BYTES;
  for (let { segment, offset } = before; segment > 0; segment -= 1, offset = Number.POSITIVE_INFINITY) {
    if (offset === 0) continue;
    await using file = await openSegment(folder, segment);
    if (file === undefined) return;
    let end = Math.min(offset, (await file.stat()).size);
    while (end > 0) {
      const begin = Math.max(0, end - size);
      const block = await readBlock(file, begin, end);
      // The first line of a block began before the block, unless the file begins here.
      const first = begin === 0 ? 0 : block.indexOf(LINE_FEED) + 1;
      if (begin === 0 || (first > 0 && first < block.length)) {
        yield decodeAll(block.subarray(first), { segment, offset: begin + first }).toReversed();
        end = begin + first;
      } else if (size === BLOCK_BYTES) {
        end = begin; // longer than any line: damaged
      }
      size = Math.min(BLOCK_BYTES, 2 * size);
    }
  }
}

function openSegment(folder: string, segment: number): Promise<FileHandle | undefined> {
  return open(segmentPath(folder, segment), "r").catch(ifAbsent(undefined));
}

async function readBlock(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(to - from), 0, to - from, from);
  return buffer.subarray(0, bytesRead);
}

function decodeAll(block: Buffer, { segment, offset }: Position): PlacedEntry[] {
  const entries: PlacedEntry[] = [];
  for (let at = 0; at < block.length; ) {
    const found = block.indexOf(LINE_FEED, at);
    const end = found === -1 ? block.length : found;
    const entry = end > at ? decodeEntry(block.toString("utf8", at, end)) : undefined;
    if (entry !== undefined) entries.push({ entry: shownEntry(entry), position: { segment, offset: offset + at } });
    at = end + 1;
  }
  return entries;
}
