/** The log of one machine: what its app prints and what happens to the machine, line by line, on disk. */
import { setTimeout as delay } from "node:timers/promises";
import { LogAllowance, type LogRate } from "./allowance.ts";
import { encodeEntry, type LogStream, type StoredEntry } from "./entry.ts";
import { LINE_FEED, LineCutter, MAX_LINE_BYTES } from "./lines.ts";
import { Losses } from "./losses.ts";
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
  /** How much of what the app prints is kept per second. */
  rate: LogRate;
  /** Creates the directory. */
  prepare(): Promise<void>;
  /** Whether the machine is already destroyed. */
  ended?: boolean;
}

type PrintedStream = Exclude<LogStream, "platform">;

export class MachineLog {
  readonly machine: string;
  readonly folder: string;
  readonly #writer: LogWriter;
  readonly #cutters = new Map<LogStream, LineCutter>();
  readonly #allowance: LogAllowance;
  readonly #losses: Losses;
  /** Streams of which something was left out that ended within a line. */
  readonly #broken = new Set<LogStream>();
  readonly #listeners = new Set<() => void>();
  /** Bytes of the app's output received, or reported as lost, since its guest booted. */
  #printed = 0;
  #lastAt = 0;
  #stamp: { ms: number; text: string } | undefined;
  #ready = false;
  #lost = 0;
  #flushing: NodeJS.Timeout | undefined;
  #ended: boolean;
  #readers = 0;
  #unread = Promise.withResolvers<void>();

  constructor({ machine, folder, maxBytes, rate, prepare, ended = false }: MachineLogOptions) {
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
    this.#allowance = new LogAllowance(rate);
    this.#losses = new Losses({ allowance: this.#allowance, tell: (text) => this.platform(text) });
    this.#writer = new LogWriter({ folder, maxBytes, prepare, onWritten, onLost });
  }

  /** Adds output of the app, as far as there is room for it. Never waits, and never throws because of the disk. */
  output(stream: PrintedStream, bytes: Buffer): void {
    this.#prepare();
    if (stream !== "hooks") this.#printed += bytes.length;
    const taken = this.#admit(stream, bytes);
    if (taken.length === 0) return;
    const cutter = this.#cutters.get(stream) ?? new LineCutter();
    this.#cutters.set(stream, cutter);
    for (const line of cutter.push(taken)) this.#add(stream, line);
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
    if (lost > 0) this.#losses.neverArrived(lost);
  }

  /** The next guest starts counting its output at 0. */
  newGuest(): void {
    this.#prepare();
    this.flush();
    this.#losses.settle();
    this.#broken.clear();
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
    this.#losses.settle();
    if (this.#ready) this.#writer.rest();
  }

  /** Writes what is pending. The platform ends; the machine may keep running. */
  async close(): Promise<void> {
    this.flush();
    this.#losses.settle();
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

  /** Returns what the log takes of these bytes. */
  #admit(stream: PrintedStream, bytes: Buffer): Buffer {
    // After a gap, the next whole line is the first one. A program that ends no lines gets what there is.
    const begin = this.#broken.has(stream) && !this.#losses.leaving ? bytes.indexOf(LINE_FEED) + 1 : 0;
    const end = this.#losses.leaving ? 0 : begin + this.#allowance.room(bytes.subarray(begin));
    const left = begin + bytes.length - end;
    this.#allowance.took({ bytes: end - begin });
    if (!this.#losses.leaving) this.#broken.delete(stream);
    if (left > 0) this.#losses.leaveOut(left, stream !== "hooks");
    if (end < bytes.length) {
      for (const line of this.#cutters.get(stream)?.flush() ?? []) this.#add(stream, line);
      if (bytes.at(-1) === LINE_FEED) this.#broken.delete(stream);
      else this.#broken.add(stream);
      this.#losses.leave();
    }
    return bytes.subarray(begin, end);
  }

  #add(stream: LogStream, text: string): void {
    if (stream !== "platform") this.#allowance.took({ lines: 1 });
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
    const printed = this.#printed - held - this.#losses.untold;
    return { at: this.#timeOf(this.#lastAt), machine: this.machine, stream, text, printed };
  }

  /** The lines of one chunk mostly share a millisecond, and with it the text of their time. */
  #timeOf(ms: number): string {
    if (this.#stamp?.ms !== ms) this.#stamp = { ms, text: new Date(ms).toISOString() };
    return this.#stamp.text;
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
