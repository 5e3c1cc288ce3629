/**
 * What waits to be written to a socket. Everything that one turn of the event loop produces (a head, the first piece of
 * its body, the frames of several chunks) leaves in one write. The writes of all sockets follow each other, after all
 * reads: that forwards a tenth more requests than a write after each read. An outbox also tells its writer when the other
 * side reads too slowly.
 */
import type { Duplex } from "node:stream";

/** Up to this many bytes are copied together; above it, copying costs more than a write of several buffers. */
const MERGE_UP_TO = 64 * 1024;

interface OutboxOptions {
  /** Above this many waiting bytes, the writer is asked to pause. */
  bufferBytes: number;
  to: "app" | "client";
  /** Called when the writer may continue. */
  onRoom(): void;
}

/**
 * Outboxes with something to write, until the event loop has done all its reads. Those to apps come first: a process that
 * was woken by one piece finds the others there, and is not woken for each of them.
 */
const forApps: Outbox[] = [];
const forClients: Outbox[] = [];
/** Whether they will be written. */
let planned = false;

export class Outbox {
  readonly #socket: Duplex;
  readonly #bufferBytes: number;
  readonly #onRoom: () => void;
  readonly #waiting: Outbox[];
  #parts: (string | Buffer)[] = [];
  #size = 0;
  #full = false;
  #whenSent: (() => void) | undefined;
  /** Bytes handed to the socket so far. */
  written = 0;

  constructor(socket: Duplex, { bufferBytes, to, onRoom }: OutboxOptions) {
    this.#socket = socket;
    this.#bufferBytes = bufferBytes;
    this.#waiting = to === "app" ? forApps : forClients;
    this.#onRoom = onRoom;
    socket.on("drain", () => this.#room());
  }

  /** Whether the writer was asked to pause. */
  get full(): boolean {
    return this.#full;
  }

  /** Takes bytes, or text of latin1 characters. Returns false if the writer should pause until `onRoom`. */
  push(part: string | Buffer): boolean {
    if (this.#parts.length === 0) this.#flushLater();
    this.#parts.push(part);
    this.#size += part.length;
    if (this.#size + this.#socket.writableLength >= this.#bufferBytes) this.#full = true;
    return !this.#full;
  }

  /** Calls back once the kernel has all bytes. Never calls back if the socket closes first. */
  whenSent(callback: () => void): void {
    if (this.#parts.length === 0 && this.#socket.writableLength === 0) callback();
    else {
      this.#whenSent = callback;
      if (this.#parts.length === 0) this.push("");
    }
  }

  /** Discards what was not written, and the callback. */
  clear(): void {
    this.#parts = [];
    this.#size = 0;
    this.#full = false;
    this.#whenSent = undefined;
  }

  /** Writes now what would be written at the end of the turn. */
  flush(): void {
    const parts = this.#parts;
    if (parts.length === 0) return;
    const size = this.#size;
    this.#parts = [];
    this.#size = 0;
    if (!this.#socket.writable) return;
    this.written += size;
    const merged =
      parts.length === 1 ? (parts[0] as string | Buffer) : size <= MERGE_UP_TO ? merge(parts, size) : parts;
    const sent = this.#whenSent;
    this.#whenSent = undefined;
    if (Array.isArray(merged)) this.#writeAll(merged);
    else if (typeof merged === "string") this.#socket.write(merged, "latin1");
    else this.#socket.write(merged);
    const waiting = this.#socket.writableLength > 0;
    if (sent !== undefined) {
      if (waiting) this.#socket.write("", (error) => void (error ?? sent()));
      else sent();
    }
    if (this.#full && !this.#socket.writableNeedDrain) this.#room();
  }

  #flushLater(): void {
    this.#waiting.push(this);
    if (planned) return;
    planned = true;
    setImmediate(flushAll);
  }

  #writeAll(parts: (string | Buffer)[]): void {
    this.#socket.cork();
    for (const part of parts) this.#socket.write(part, "latin1");
    this.#socket.uncork();
  }

  #room(): void {
    if (!this.#full) return;
    this.#full = false;
    this.#onRoom();
  }
}

function flushAll(): void {
  planned = false;
  for (const outbox of forApps.splice(0)) outbox.flush();
  for (const outbox of forClients.splice(0)) outbox.flush();
}

function merge(parts: (string | Buffer)[], size: number): Buffer {
  const whole = Buffer.allocUnsafe(size);
  let at = 0;
  for (const part of parts) {
    if (typeof part === "string") whole.write(part, at, "latin1");
    else whole.set(part, at);
    at += part.length;
  }
  return whole;
}
