/** Reads the logs of a machine or an app: the last lines, and then new ones, without gaps or repetition. */
import type { LogEntry } from "./entry.ts";
import type { MachineLog } from "./machine-log.ts";
import { type LogQuery, merged, type Range, rangesOf } from "./merge.ts";
import type { Position } from "./segments.ts";

/** The logs to read. */
export interface LogSource {
  /** The logs that exist now. */
  list(): readonly MachineLog[];
  /** Whether no log will be added any more. */
  complete(): boolean;
  /** Calls `listener` when a log was added, or none will be any more. Returns a function that ends that. */
  subscribe(listener: () => void): () => void;
}

/** Entries as they arrive, in blocks. A reader that stops early calls `return`. */
export type LogBlocks = AsyncGenerator<LogEntry[], void>;

/** Returns the requested lines, in blocks. Ends without an error when the signal is aborted. */
export async function* readLogs(source: LogSource, query: LogQuery, signal: AbortSignal): LogBlocks {
  const wake = new NewLines(signal);
  const reader = new Reader(source, wake);
  try {
    // Followed before the first read, so that the end of a machine waits until it has been read.
    if (query.follow === true) reader.join();
    const ranges = await rangesOf(reader.logs, query);
    for (const { log, to } of ranges) reader.positions.set(log, to);
    yield* merged(ranges, query);
    while (query.follow === true && !signal.aborted) {
      const changed = wake.next();
      reader.join();
      const ended = reader.logs.filter((log) => log.ended);
      const news = reader.news();
      yield* merged(news, query);
      for (const log of ended) reader.leave(log);
      if (reader.logs.length === 0 && source.complete()) return;
      if (news.length === 0) await changed;
    }
  } finally {
    reader.close();
  }
}

/** Wakes readers that wait for new lines. */
class NewLines {
  #changed = Promise.withResolvers<void>();

  constructor(signal: AbortSignal) {
    signal.addEventListener("abort", () => this.ring(), { once: true });
  }

  /** Settles at the next nudge. Take it before looking, and no nudge is missed. */
  next(): Promise<void> {
    this.#changed = Promise.withResolvers();
    return this.#changed.promise;
  }

  readonly ring = (): void => this.#changed.resolve();
}

/** The logs of one reader, and its position in each. */
class Reader {
  readonly positions = new Map<MachineLog, Position>();
  readonly #source: LogSource;
  readonly #wake: NewLines;
  readonly #leaving = new Map<MachineLog, () => void>();
  readonly #done = new WeakSet<MachineLog>();
  #stop: (() => void) | undefined;

  constructor(source: LogSource, wake: NewLines) {
    this.#source = source;
    this.#wake = wake;
  }

  get logs(): MachineLog[] {
    return this.#stop === undefined ? [...this.#source.list()] : [...this.#leaving.keys()];
  }

  /** Subscribes to everything that is written, also in new logs. */
  join(): void {
    this.#stop ??= this.#source.subscribe(this.#wake.ring);
    for (const log of this.#source.list())
      if (!this.#leaving.has(log) && !this.#done.has(log)) this.#leaving.set(log, log.subscribe(this.#wake.ring));
  }

  /** What was written since the last look; for a new log, all of it. */
  news(): Range[] {
    const ranges = this.logs.map((log): Range => {
      const { begin, end } = log.position;
      return { log, from: this.positions.get(log) ?? begin, to: end };
    });
    for (const { log, to } of ranges) this.positions.set(log, to);
    return ranges.filter(({ from, to }) => from.segment !== to.segment || from.offset !== to.offset);
  }

  leave(log: MachineLog): void {
    this.#leaving.get(log)?.();
    this.#leaving.delete(log);
    this.#done.add(log);
  }

  close(): void {
    for (const log of [...this.#leaving.keys()]) this.leave(log);
    this.#stop?.();
  }
}
