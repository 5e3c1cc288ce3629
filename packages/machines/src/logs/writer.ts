/**
 * The files of one machine's log: `<number>.ndjson` in a directory, the highest number being written. When a file has
 * reached half of the log's limit, the next one begins, and only the previous one is kept.
 *
 * Adding a line never waits. Lines wait here, up to a limit; when a slow disk leaves no room, lines are dropped.
 */
import { type FileHandle, open, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { type FoundSegments, findLog, type Position, segmentPath } from "./segments.ts";

/** Limit of pending lines, in characters: with an app that prints 1 MB/s, a disk may be a second behind. */
const MAX_PENDING = 1024 * 1024;
/** Characters per write: much less than a file, so that files end where they should. */
const MAX_BATCH = 128 * 1024;
/** The pause after a failed write: a full disk is not emptied faster. */
const RETRY_MS = 1000;

interface LogWriterOptions {
  folder: string;
  /** The limit of all files together, in bytes. */
  maxBytes: number;
  /** Creates the directory. */
  prepare(): Promise<void>;
  /** Called when there is more to read. */
  onWritten(): void;
  /** Called with the number of pending lines that could not be written. */
  onLost(lines: number): void;
}

export class LogWriter {
  readonly #options: LogWriterOptions;
  #found: FoundSegments | undefined;
  #position: Position = { segment: 1, offset: 0 };
  #oldest = 1;
  #pending: string[] = [];
  #pendingSize = 0;
  #file: FileHandle | undefined;
  #resting = false;
  #closed = false;
  #working: Promise<void> | undefined;

  constructor(options: LogWriterOptions) {
    this.#options = options;
  }

  /** The end of what is written. */
  get end(): Position {
    this.find();
    return this.#position;
  }

  /** The beginning of the oldest line. */
  get begin(): Position {
    this.find();
    return { segment: this.#oldest, offset: 0 };
  }

  /** The files that an earlier platform left, read once, at the first use of the log. */
  find(): FoundSegments {
    if (this.#found === undefined) {
      this.#found = findLog(this.#options.folder);
      this.#position = this.#found.end;
      this.#oldest = this.#found.oldest;
    }
    return this.#found;
  }

  /** Adds a line, with its newline, to the pending ones. False when there is no room for it. */
  add(line: string): boolean {
    if (this.#closed) return true; // the machine is gone, and nobody can read its log any more
    if (this.#pendingSize + line.length > MAX_PENDING) return false;
    this.#pending.push(line);
    this.#pendingSize += line.length;
    this.#work();
    return true;
  }

  /** Closes the file until there is something to write again. */
  rest(): void {
    this.#resting = true;
    this.#work();
  }

  /** Writes the pending lines once, whether that works or not. Lines added later are dropped. */
  async close(): Promise<void> {
    this.#closed = true;
    this.rest();
    while (this.#working !== undefined) await this.#working;
  }

  /** Reopens a closed writer. */
  reopen(): void {
    this.#closed = false;
  }

  #work(): void {
    this.#working ??= this.#writeAll().finally(() => {
      this.#working = undefined;
      if (this.#pending.length > 0 || this.#resting) this.#work();
    });
  }

  async #writeAll(): Promise<void> {
    this.find();
    while (this.#pending.length > 0) {
      const lines = this.#take();
      try {
        await this.#write(Buffer.from(lines.join("")));
        this.#options.onWritten();
      } catch {
        await this.#closeFile();
        this.#options.onLost(lines.length);
        if (!this.#closed) await delay(RETRY_MS, undefined, { ref: false });
      }
    }
    if (!this.#resting) return;
    // First, because a rest that is asked for while the file is closing is for what is written after that.
    this.#resting = false;
    await this.#closeFile();
  }

  #take(): string[] {
    let size = 0;
    const count = this.#pending.findIndex((line) => (size += line.length) > MAX_BATCH);
    const lines = this.#pending.splice(0, count === -1 ? this.#pending.length : Math.max(1, count));
    this.#pendingSize -= lines.reduce((sum, line) => sum + line.length, 0);
    return lines;
  }

  async #write(bytes: Buffer): Promise<void> {
    const { offset } = this.#position;
    if (offset > 0 && offset + bytes.length > this.#options.maxBytes / 2) await this.#rotate();
    this.#file ??= await this.#open();
    await this.#file.appendFile(bytes);
    this.#advance(bytes.length);
  }

  async #open(): Promise<FileHandle> {
    const path = segmentPath(this.#options.folder, this.#position.segment);
    const opened = await open(path, "a", 0o600).catch(async () => {
      await this.#options.prepare();
      return open(path, "a", 0o600);
    });
    try {
      // A line cut short by a full disk or the end of a platform must not spoil the next one.
      const { size } = await opened.stat();
      if (size > 0) await opened.appendFile("\n");
      this.#position = { ...this.#position, offset: size === 0 ? 0 : size + 1 };
      return opened;
    } catch (error) {
      await opened.close().catch(() => {});
      throw error;
    }
  }

  #advance(bytes: number): void {
    this.#position = { ...this.#position, offset: this.#position.offset + bytes };
  }

  async #rotate(): Promise<void> {
    await this.#closeFile();
    const { segment } = this.#position;
    this.#position = { segment: segment + 1, offset: 0 };
    for (let old = this.#oldest; old < segment; old += 1)
      await rm(segmentPath(this.#options.folder, old), { force: true });
    this.#oldest = segment;
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close().catch(() => {});
  }
}
