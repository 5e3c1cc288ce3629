/** The log of one machine: what its app prints and what happens to the machine, line by line, on disk. */
import { setTimeout as delay } from "node:timers/promises";
import { encodeEntry, type LogStream, type StoredEntry } from "./entry.ts";
import { LineCutter, MAX_LINE_BYTES } from "./lines.ts";
import type { Position } from "./segments.ts";
import { LogWriter } from "./writer.ts";

/**
 * A line without an end is written after this time: a prompt, or the last output of a program that hangs. Long enough
 * not to cut a line in two whose second half is still in a busy guest.
 */
const FLUSH_MS = 1000;
/** How long followers may take to read the end, when the machine is destroyed. */
const LAST_READ_MS = 1000;

export interface MachineLogOptions {
  /** Id of the machine. */
  machine: string;
  folder: string;
  /** How much its files may take together. */
  maxBytes: number;
  /** Creates the directory. */
  prepare(): Promise<void>;
  /** Whether the machine is already destroyed. */
  ended?: boolean;
}

export class MachineLog {
  readonly machine: string;
  readonly folder: string;
  readonly #writer: LogWriter;
  readonly #cutters = new Map<LogStream, LineCutter>();
  readonly #listeners = new Set<() => void>();
  /** Bytes of the app's output received, or reported as lost, since its guest booted. */
  #printed = 0;
  #lastAt = 0;
  #ready = false;
  #lost = 0;
  #flushing: NodeJS.Timeout | undefined;
  #ended: boolean;
  #readers = 0;
  #unread = Promise.withResolvers<void>();

  constructor({ machine, folder, maxBytes, prepare, ended = false }: MachineLogOptions) {
    this.machine = machine;
    this.#ended = ended;
    this.folder = folder;
    const onWritten = () => {
      if (this.#lost > 0) this.#tellLost();
      this.#notify();
    };
    const onLost = (lines: number) => {
      this.#lost += lines;
    };
    this.#writer = new LogWriter({ folder, maxBytes, prepare, onWritten, onLost });
  }

  /** Adds output of the app. Never waits, and never throws because of the disk. */
  output(stream: Exclude<LogStream, "platform">, bytes: Buffer): void {
    this.#prepare();
    const cutter = this.#cutters.get(stream) ?? new LineCutter();
    this.#cutters.set(stream, cutter);
    if (stream !== "hooks") this.#printed += bytes.length;
    for (const line of cutter.push(bytes)) this.#add(stream, line);
    if (cutter.held === 0) return;
    this.#flushing ??= setTimeout(() => this.flush(), FLUSH_MS).unref();
  }

  /** Adds a sentence of the platform. */
  platform(text: string): void {
    this.#prepare();
    this.#add("platform", text.slice(0, MAX_LINE_BYTES));
  }

  /** The app has printed this many bytes since its guest booted. Bytes that did not arrive are reported as lost. */
  printed(total: number): void {
    this.#prepare();
    const lost = total - this.#printed;
    if (lost !== 0) this.flush(); // what follows does not continue the held line
    this.#printed = total;
    // A smaller number comes from another guest: start counting again.
    if (lost > 0) this.platform(`${lost} bytes of output were lost while nobody read them.`);
  }

  /** The next guest starts counting its output at 0. */
  newGuest(): void {
    this.#prepare();
    this.flush();
    this.#printed = 0;
  }

  /** Writes lines that have not ended, because nothing more arrives for a while. */
  flush(): void {
    clearTimeout(this.#flushing);
    this.#flushing = undefined;
    for (const [stream, cutter] of this.#cutters) for (const line of cutter.flush()) this.#add(stream, line);
  }

  /** The guest is gone or asleep: closes the files. */
  rest(): void {
    this.flush();
    if (this.#ready) this.#writer.rest();
  }

  /** Writes what is pending. The platform ends; the machine may keep running. */
  async close(): Promise<void> {
    this.flush();
    if (this.#ready) await this.#writer.close();
  }

  /** Ends the log before its directory is removed. Followers get a moment to read the end. */
  async end(): Promise<void> {
    await this.close();
    this.#ended = true;
    this.#unread = Promise.withResolvers();
    this.#notify();
    if (this.#readers > 0) await Promise.race([this.#unread.promise, delay(LAST_READ_MS, undefined, { ref: false })]);
  }

  /** Reopens the log, because the machine could not be destroyed. */
  reopen(): void {
    this.#ended = false;
    this.#writer.reopen();
  }

  /** Whether the log has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  get position(): { begin: Position; end: Position } {
    return { begin: this.#writer.begin, end: this.#writer.end };
  }

  /** Calls `listener` whenever there is more to read, or the log has ended. Returns a function that ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    this.#readers += 1;
    return () => {
      if (!this.#listeners.delete(listener)) return;
      this.#readers -= 1;
      if (this.#readers === 0) this.#unread.resolve();
    };
  }

  /** Continues where an earlier platform stopped, with its byte count and after its last time. */
  #prepare(): void {
    if (this.#ready) return;
    this.#ready = true;
    const { last } = this.#writer.find();
    this.#printed = last?.printed ?? 0;
    this.#lastAt = Date.parse(last?.at ?? "") || 0;
  }

  #add(stream: LogStream, text: string): void {
    if (this.#lost > 0) this.#tellLost();
    if (this.#lost > 0 || !this.#writer.add(encodeEntry(this.#entry(stream, text)))) this.#lost += 1;
  }

  #tellLost(): void {
    const text = `${this.#lost} lines were lost: the disk is full, or too slow for them.`;
    if (this.#writer.add(encodeEntry(this.#entry("platform", text)))) this.#lost = 0;
  }

  #entry(stream: LogStream, text: string): StoredEntry {
    this.#lastAt = Math.max(this.#lastAt, Date.now());
    const held = (this.#cutters.get("stdout")?.held ?? 0) + (this.#cutters.get("stderr")?.held ?? 0);
    const at = new Date(this.#lastAt).toISOString();
    return { at, machine: this.machine, stream, text, printed: this.#printed - held };
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
