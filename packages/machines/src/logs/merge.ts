/** Merges several logs into one, ordered by time. */
import type { LogEntry, LogStream } from "./entry.ts";
import type { MachineLog } from "./machine-log.ts";
import { type PlacedEntry, readBackwards, readForwards } from "./read.ts";
import type { Position } from "./segments.ts";

/** Which lines to read. */
export interface LogQuery {
  /** At most this many of the matching lines, the last ones. */
  limit: number;
  /** Only lines from this moment on, in milliseconds since 1970. */
  sinceMs?: number;
  /** Only lines of these streams; all when absent. */
  streams?: readonly LogStream[];
  /** Continue with new lines until the machine is destroyed. */
  follow?: boolean;
}

/** A part of one machine's log. */
export interface Range {
  log: MachineLog;
  from: Position;
  to: Position;
}

/** Entries per block, at most. */
const MAX_BLOCK = 500;

/** One of several sources, with its next entries. */
class Source<T> {
  readonly #blocks: AsyncGenerator<T[], void>;
  #block: T[] = [];
  #next = 0;

  constructor(blocks: AsyncGenerator<T[], void>) {
    this.#blocks = blocks;
  }

  get head(): T | undefined {
    return this.#block[this.#next];
  }

  /** Moves to the next entry; asynchronous only at the end of a block. */
  advance(): Promise<void> | undefined {
    this.#next += 1;
    return this.#next < this.#block.length ? undefined : this.load();
  }

  async load(): Promise<void> {
    do {
      const next = await this.#blocks.next();
      this.#block = next.done === true ? [] : next.value;
      this.#next = 0;
      if (next.done === true) return;
    } while (this.#block.length === 0);
  }

  async close(): Promise<void> {
    await this.#blocks.return(undefined);
  }
}

/** Returns the wanted entries of all ranges, oldest first, in blocks. */
export async function* merged(ranges: readonly Range[], query: LogQuery): AsyncGenerator<LogEntry[], void> {
  const sources = ranges.map(({ log, from, to }) => new Source(readForwards(log.folder, from, to)));
  try {
    await Promise.all(sources.map((source) => source.load()));
    let block: LogEntry[] = [];
    for (;;) {
      const source = first(sources, (entry, other) => entry.at < other.at);
      if (source?.head === undefined) break;
      if (isWanted(source.head, query) && !isTooOld(source.head, query)) block.push(source.head);
      const loading = source.advance();
      if (block.length >= MAX_BLOCK || (loading !== undefined && block.length > 0)) {
        yield block;
        block = [];
      }
      await loading;
    }
    if (block.length > 0) yield block;
  } finally {
    await Promise.all(sources.map((source) => source.close()));
  }
}

/** Where to begin in each log so that the entries before `ends` are the requested last lines. */
export async function rangesOf(logs: readonly MachineLog[], query: LogQuery): Promise<Range[]> {
  const ranges = logs.map((log) => ({ log, from: log.position.end, to: log.position.end }));
  const sources = ranges.map(({ log, to }) => new Source(readBackwards(log.folder, to)));
  const newer = (entry: PlacedEntry, other: PlacedEntry) => entry.entry.at > other.entry.at;
  try {
    if (query.limit > 0) await Promise.all(sources.map((source) => source.load()));
    for (let count = 0; count < query.limit; ) {
      const source = first(sources, newer);
      if (source?.head === undefined || isTooOld(source.head.entry, query)) break;
      const range = ranges[sources.indexOf(source)];
      if (range !== undefined && isWanted(source.head.entry, query)) {
        range.from = source.head.position;
        count += 1;
      }
      await source.advance();
    }
    return ranges;
  } finally {
    await Promise.all(sources.map((source) => source.close()));
  }
}

function isWanted({ stream }: LogEntry, { streams }: LogQuery): boolean {
  return streams === undefined || streams.includes(stream);
}

/** Whether a line is older than requested; all lines before it are then, too. */
function isTooOld({ at }: LogEntry, { sinceMs }: LogQuery): boolean {
  return sinceMs !== undefined && Date.parse(at) < sinceMs;
}

/** The source whose head is the oldest; among equals, the first one. */
function first<T>(sources: readonly Source<T>[], isBefore: (head: T, other: T) => boolean): Source<T> | undefined {
  let found: Source<T> | undefined;
  for (const source of sources) {
    if (source.head === undefined) continue;
    if (found?.head === undefined || isBefore(source.head, found.head)) found = source;
  }
  return found;
}
