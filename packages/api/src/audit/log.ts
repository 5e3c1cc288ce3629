/** The audit log: files that are only appended to. The newest is `audit.jsonl`, then `audit.1.jsonl`, and so on. */
import { appendFileSync, createReadStream, mkdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { background } from "@hibernaut/lib/background";
import { flush } from "@hibernaut/lib/durable";
import { type AuditEntry, type AuditQuery, matches } from "./entry.ts";

/** The log is kept in this many files, so that a quarter of it goes at a time. */
const FILES = 4;
/** How much later than written a line is on the disk at the latest, in milliseconds: a power cut may lose so much. */
const FLUSH_MS = 1000;
/** A follower that is further behind than this misses lines. */
const MAX_BEHIND = 1000;
const BATCH = 500;

interface AuditLogOptions {
  /** Made when it does not exist. */
  folder: string;
  /** How much the files may take together. */
  maxBytes: number;
  /** Receives a fault of a flush, which comes too late for the request that wrote the line. */
  onFault(error: unknown): void;
}

/** Appends lines, and reads them. */
export class AuditLog {
  readonly #options: AuditLogOptions;
  readonly #listeners = new Set<(entry: AuditEntry) => void>();
  #size: number;
  #flushing: NodeJS.Timeout | undefined;

  constructor(options: AuditLogOptions) {
    this.#options = options;
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    this.#size = sizeOf(this.#file(0));
  }

  /** Appends a line. Throws when it cannot be written. After that, it survives everything but a power cut within a second. */
  append(entry: AuditEntry): void {
    const line = `${JSON.stringify(entry)}\n`;
    const bytes = Buffer.byteLength(line);
    if (this.#size > 0 && this.#size + bytes > this.#options.maxBytes / FILES) this.#rotate();
    appendFileSync(this.#file(0), line, { mode: 0o600 });
    this.#size += bytes;
    this.#flushing ??= setTimeout(() => background(this.#flush(), "flushing the audit log"), FLUSH_MS).unref();
    for (const listener of this.#listeners) listener(entry);
  }

  /** Reads lines, oldest first. */
  async *read(query: AuditQuery): AsyncGenerator<AuditEntry[], void> {
    const news = query.follow ? this.#news(query) : undefined;
    try {
      const last: AuditEntry[] = [];
      for await (const entry of this.#stored(query)) {
        last.push(entry);
        if (last.length > query.limit) last.shift();
      }
      for (let from = 0; from < last.length; from += BATCH) yield last.slice(from, from + BATCH);
      const seen = new Set(last.map(keyOf));
      for (let block = await news?.next(); block !== undefined; block = await news?.next())
        yield block.filter((entry) => !seen.has(keyOf(entry)));
    } finally {
      news?.stop();
    }
  }

  async close(): Promise<void> {
    await this.#flush();
  }

  /** What is written from now on. `next` waits for it, and returns undefined when the signal aborts. */
  #news(query: AuditQuery) {
    let waiting: AuditEntry[] = [];
    let wake = () => {};
    const listener = (entry: AuditEntry) => {
      if (!matches(entry, query)) return;
      if (waiting.length < MAX_BEHIND) waiting.push(entry);
      wake();
    };
    const abort = () => wake();
    this.#listeners.add(listener);
    query.signal.addEventListener("abort", abort);
    return {
      next: async (): Promise<AuditEntry[] | undefined> => {
        while (waiting.length === 0) {
          if (query.signal.aborted) return undefined;
          await new Promise<void>((resolve) => (wake = resolve));
        }
        const block = waiting;
        waiting = [];
        return block;
      },
      stop: () => {
        this.#listeners.delete(listener);
        query.signal.removeEventListener("abort", abort);
      },
    };
  }

  async *#stored(query: AuditQuery): AsyncGenerator<AuditEntry, void> {
    for (let number = FILES - 1; number >= 0; number -= 1) {
      const file = this.#file(number);
      if (sizeOf(file) === 0) continue;
      for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
        query.signal.throwIfAborted();
        const entry = parsed(line);
        if (entry !== undefined && matches(entry, query)) yield entry;
      }
    }
  }

  #rotate(): void {
    for (let number = FILES - 2; number >= 0; number -= 1) {
      if (sizeOf(this.#file(number)) > 0) renameSync(this.#file(number), this.#file(number + 1));
    }
    this.#size = 0;
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#flushing);
    this.#flushing = undefined;
    if (this.#size === 0) return;
    await flush(this.#file(0)).catch((error: unknown) => this.#options.onFault(error));
  }

  #file(number: number): string {
    return join(this.#options.folder, number === 0 ? "audit.jsonl" : `audit.${number}.jsonl`);
  }
}

function keyOf({ request_id: id, phase, at }: AuditEntry): string {
  return `${id} ${phase} ${at}`;
}

/** A line that a crash cut off is left out. */
function parsed(line: string): AuditEntry | undefined {
  try {
    return JSON.parse(line) as AuditEntry;
  } catch {
    return undefined;
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
