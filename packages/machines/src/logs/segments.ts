/** How a log is stored: numbered files, of which the highest is being written. */
import { closeSync, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { decodeEntry, type StoredEntry } from "./entry.ts";
import { MAX_LINE_BYTES } from "./lines.ts";

/** A position in the log: a file, and the byte in it where a line begins. */
export interface Position {
  segment: number;
  offset: number;
}

/** The files that an earlier platform left. */
export interface FoundSegments {
  oldest: number;
  end: Position;
  /** The last line, unless it is damaged. */
  last: StoredEntry | undefined;
}

/** In JSON, a byte takes up to six characters (`\u0000`); the rest of an entry is less than 1 KB. */
export const MAX_ENTRY_BYTES = 6 * MAX_LINE_BYTES + 1024;

export function segmentPath(folder: string, segment: number): string {
  return join(folder, `${segment}.ndjson`);
}

/** Reads two names and the end of one file. A directory that cannot be read counts as empty. */
export function findLog(folder: string): FoundSegments {
  const segments = segmentsOf(folder);
  const segment = Math.max(1, ...segments);
  const found = { oldest: Math.min(segment, ...segments), end: { segment, offset: 0 }, last: undefined };
  let file: number;
  try {
    file = openSync(segmentPath(folder, segment), "r");
  } catch {
    return found;
  }
  try {
    const { size } = fstatSync(file);
    const tail = Buffer.alloc(Math.min(size, MAX_ENTRY_BYTES));
    readSync(file, tail, 0, tail.length, size - tail.length);
    const entries = tail.toString("utf8").split("\n").map(decodeEntry);
    return { ...found, end: { segment, offset: size }, last: entries.findLast((entry) => entry !== undefined) };
  } finally {
    closeSync(file);
  }
}

function segmentsOf(folder: string): number[] {
  try {
    const names = readdirSync(folder).flatMap((name) => /^([1-9]\d{0,14})\.ndjson$/.exec(name)?.[1] ?? []);
    return names.map(Number);
  } catch {
    return []; // the machine has not run yet, or is gone
  }
}
