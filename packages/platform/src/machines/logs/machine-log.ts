/** The log of one machine: what its app prints and what becomes of it, line by line, on disk. */
import { setTimeout as delay } from "node:timers/promises";
import { encodeEntry, type LogStream, type StoredEntry } from "./entry.ts";
import { LineCutter, MAX_LINE_BYTES } from "./lines.ts";
import type { Position } from "./segments.ts";
import { LogWriter } from "./writer.ts";

/**
 * A line that does not end is written all the same after this: a prompt, or the last words of a program that hangs.
 * Not less, so that a line of which half is still in a busy guest is not cut in two.
 */
const FLUSH_MS = 1000;
/** For those who read along, when the machine is destroyed. */
const LAST_READ_MS = 1000;

export interface MachineLogOptions {
  /** Id of the machine. */
  machine: string;
  folder: string;
  /** What its files together may take. */
  maxBytes: number;
  /** Makes the folder. */
  prepare(): Promise<void>;
  /** The machine is gone already. */
  ended?: boolean;
}

export class MachineLog {
  readonly machine: string;
  readonly folder: string;
  readonly #writer: LogWriter;
  readonly #cutters = new Map<LogStream, LineCutter>();
  readonly #listeners = new Set<() => void>();
  /** Bytes of the app's output that have come, or are told to be lost, since its guest booted. */
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

  /** Takes what was printed. Never waits, and never throws because of the disk. */
  output(stream: Exclude<LogStream, "platform">, bytes: Buffer): void {
    this.#prepare();
    const cutter = this.#cutters.get(stream) ?? new LineCutter();
    this.#cutters.set(stream, cutter);
    if (stream !== "hooks") this.#printed += bytes.length;
    for (const line of cutter.push(bytes)) this.#add(stream, line);
    if (cutter.held === 0) return;
    this.#flushing ??= setTimeout(() => this.flush(), FLUSH_MS).unref();
  }

  /** Takes a sentence of the platform. */
  platform(text: string): void {
    this.#prepare();
    this.#add("platform", text.slice(0, MAX_LINE_BYTES));
  }

  /** The app has printed so many bytes up to here, since its guest booted. Those that did not come are told as lost. */
  printed(total: number): void {
    this.#prepare();
    const lost = total - this.#printed;
    if (lost !== 0) this.flush(); // what follows is no continuation of what is held
    this.#printed = total;
    // Less than we know of was printed by another guest, of which we begin to count.
    if (lost > 0) this.platform(`${lost} bytes of output were lost while nobody read them.`);
  }

  /** The guest to come begins to count what it prints. */
  newGuest(): void {
    this.#prepare();
    this.flush();
    this.#printed = 0;
  }

  /** Writes the lines that have not ended; nothing more comes for a while. */
  flush(): void {
    clearTimeout(this.#flushing);
    this.#flushing = undefined;
    for (const [stream, cutter] of this.#cutters) for (const line of cutter.flush()) this.#add(stream, line);
  }

  /** The guest is gone, or sleeps: no file is held open for it. */
  rest(): void {
    this.flush();
    if (this.#ready) this.#writer.rest();
  }

  /** Writes what waits. The platform ends; the machine may go on. */
  async close(): Promise<void> {
    this.flush();
    if (this.#ready) await this.#writer.close();
  }

  /** Nothing more will come, and the folder is about to go. Those who follow are given a moment to read the end. */
  async end(): Promise<void> {
    await this.close();
    this.#ended = true;
    this.#unread = Promise.withResolvers();
    this.#notify();
    if (this.#readers > 0) await Promise.race([this.#unread.promise, delay(LAST_READ_MS, undefined, { ref: false })]);
  }

  /** After an end that was none: the machine could not be destroyed. */
  reopen(): void {
    this.#ended = false;
    this.#writer.reopen();
  }

  /** Whether nothing more will come. */
  get ended(): boolean {
    return this.#ended;
  }

  get position(): { begin: Position; end: Position } {
    return { begin: this.#writer.begin, end: this.#writer.end };
  }

  /** Calls `listener` whenever there is more, or will be no more. Returns how to stop that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    this.#readers += 1;
    return () => {
      if (!this.#listeners.delete(listener)) return;
      this.#readers -= 1;
      if (this.#readers === 0) this.#unread.resolve();
    };
  }

  /** Goes on where an earlier platform stopped: with its count, and after its last moment. */
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
