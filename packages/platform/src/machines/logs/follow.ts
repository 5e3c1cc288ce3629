/** Reading the logs of one machine or of an app: the last lines, and then what comes, without gap or repetition. */
import type { LogEntry } from "./entry.ts";
import type { MachineLog } from "./machine-log.ts";
import { merged, type Range, rangesOf } from "./merge.ts";
import type { LogQuery } from "./query.ts";
import type { Position } from "./segments.ts";

/** Which logs there are to read. */
export interface LogSource {
  /** As of now. */
  list(): readonly MachineLog[];
  /** Whether no other one will be added. */
  complete(): boolean;
  /** Calls `listener` when one was added, or none will be any more. Returns how to stop that. */
  subscribe(listener: () => void): () => void;
}

/** Entries as they come, in blocks. A reader that stops early calls `return`. */
export type LogBlocks = AsyncGenerator<LogEntry[], void>;

/** The lines that were asked for, in blocks. Ends quietly when the signal is aborted. */
export async function* readLogs(source: LogSource, query: LogQuery, signal: AbortSignal): LogBlocks {
  const wake = new Wake(signal);
  const reader = new Reader(source, wake);
  try {
    // Followed from before the first look on, so that the end of a machine waits for us to have read it.
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

/** Wakes who waits for something to read. */
class Wake {
  #changed = Promise.withResolvers<void>();

  constructor(signal: AbortSignal) {
    signal.addEventListener("abort", () => this.ring(), { once: true });
  }

  /** Settles at the next ring; taken before one looks, none is missed. */
  next(): Promise<void> {
    this.#changed = Promise.withResolvers();
    return this.#changed.promise;
  }

  readonly ring = (): void => this.#changed.resolve();
}

/** Which logs one reader reads, and how far it has come in each. */
class Reader {
  readonly positions = new Map<MachineLog, Position>();
  readonly #source: LogSource;
  readonly #wake: Wake;
  readonly #leaving = new Map<MachineLog, () => void>();
  readonly #done = new WeakSet<MachineLog>();
  #stop: (() => void) | undefined;

  constructor(source: LogSource, wake: Wake) {
    this.#source = source;
    this.#wake = wake;
  }

  get logs(): MachineLog[] {
    return this.#stop === undefined ? [...this.#source.list()] : [...this.#leaving.keys()];
  }

  /** Hears of everything that is written, also in logs that are new. */
  join(): void {
    this.#stop ??= this.#source.subscribe(this.#wake.ring);
    for (const log of this.#source.list())
      if (!this.#leaving.has(log) && !this.#done.has(log)) this.#leaving.set(log, log.subscribe(this.#wake.ring));
  }

  /** What came since the last look; of a log that is new, all of it. */
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
