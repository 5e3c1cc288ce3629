/** Takes the bytes of an HTTP/1 client apart: heads, and of their bodies as much as is wanted (RFC 9112). */
import type { Field } from "../contract.ts";
import { bodyReader } from "./body.ts";
import type { BodyReader, BodySink } from "./body-reader.ts";
import { type Framing, NO_BODY } from "./fields.ts";
import { Malformed } from "./grammar.ts";
import { HeadReader } from "./head-reader.ts";
import type { Limits } from "./limits.ts";

/** What a reader tells the connection. */
export interface RequestReaderEvents {
  /** Whether to read on. */
  readonly reading: boolean;
  /** The first byte of a head arrived. */
  onHeadBegun(): void;
  /** A head is complete. The connection calls {@link RequestReader.beginRequest} before this returns, or throws. */
  onHead(head: string): void;
  /** The head is malformed or too large, or `onHead` threw. */
  onHeadFailed(error: unknown): void;
  onBodyData(piece: Buffer): void;
  onBodyEnd(trailers: readonly Field[]): void;
  /** The body is malformed, or `onBodyData` or `onBodyEnd` threw. */
  onBodyFailed(error: unknown): void;
}

/** Empty lines before a request: some old clients send one after a body (RFC 9112 2.2). */
const MOST_EMPTY_LINES = 4;
const NOTHING = Buffer.alloc(0);

export class RequestReader implements BodySink {
  readonly #limits: Readonly<Limits>;
  readonly #events: RequestReaderEvents;
  readonly #head: HeadReader;
  /** Bytes that were received and not yet read: of a head, of a body that is held back, or of requests to come. */
  #ahead: Buffer = NOTHING;
  #emptyLines = 0;
  #advancing = false;
  #inRequest = false;
  #body: BodyReader;
  #bodyWanted = false;
  #bodyDropped = false;

  constructor(limits: Readonly<Limits>, events: RequestReaderEvents) {
    this.#limits = limits;
    this.#events = events;
    this.#head = new HeadReader(limits.headBytes);
    this.#body = bodyReader(NO_BODY, limits);
  }

  /** Whether a head has begun and is not complete. */
  get headBegun(): boolean {
    return this.#head.begun;
  }

  /** Whether the body of the current request was read to its end. */
  get bodyDone(): boolean {
    return this.#body.done;
  }

  /** Whether so much is waiting to be read that the client should pause. */
  get full(): boolean {
    return this.#ahead.length >= this.#limits.aheadBytes;
  }

  /** Receives bytes, without reading them yet. */
  push(chunk: Buffer): void {
    this.#ahead = this.#ahead.length === 0 ? chunk : Buffer.concat([this.#ahead, chunk]);
  }

  /** Reads as much as can be used now. Returns false if it was called from within itself and left that to the caller. */
  advance(): boolean {
    if (this.#advancing) return false;
    this.#advancing = true;
    try {
      while (this.#events.reading && this.#step());
    } finally {
      this.#advancing = false;
    }
    return true;
  }

  /** A head was accepted: expects its body, which is held back at first. */
  beginRequest(framing: Framing): void {
    this.#emptyLines = 0;
    this.#inRequest = true;
    this.#body = bodyReader(framing, this.#limits);
    this.#bodyWanted = false;
    this.#bodyDropped = false;
  }

  /** The response was sent: the next bytes are a head again. */
  endRequest(): void {
    this.#inRequest = false;
  }

  /** Lets the body flow with the next `advance`. */
  resumeBody(): void {
    this.#bodyWanted = true;
  }

  pauseBody(): void {
    this.#bodyWanted = false;
  }

  /**
   * Discards the rest of the body.
   *
   * @param keep whether the connection is to be kept, for which what is already here is read to its end, if it has one
   */
  dropBody(keep: boolean): void {
    this.#bodyDropped = true;
    if (keep && this.#ahead.length > 0 && !this.#body.done) this.#readBody();
  }

  /** Returns the bytes that were not read, and forgets them. */
  takeRest(): Buffer {
    const rest = this.#ahead;
    this.#ahead = NOTHING;
    return rest;
  }

  /** Returns false if something else has to happen first. */
  #step(): boolean {
    if (this.#ahead.length === 0) return false;
    if (!this.#inRequest) return this.#readHead();
    return this.#bodyWanted && !this.#body.done && this.#readBody();
  }

  #readHead(): boolean {
    if (!this.#head.begun) this.#events.onHeadBegun();
    try {
      const end = this.#head.read(this.#ahead, 0);
      this.#ahead = end === -1 ? NOTHING : this.#ahead.subarray(end);
      if (end === -1) return false;
      const text = this.#head.take();
      if (text === "") this.#countEmptyLine();
      else this.#events.onHead(text);
      return true;
    } catch (error) {
      this.#events.onHeadFailed(error);
      return false;
    }
  }

  #countEmptyLine(): void {
    this.#emptyLines += 1;
    if (this.#emptyLines > MOST_EMPTY_LINES) throw new Malformed("A request begins with its request line.");
  }

  #readBody(): boolean {
    const ahead = this.takeRest();
    try {
      const end = this.#body.read(ahead, 0, this);
      if (end < ahead.length) this.#ahead = ahead.subarray(end);
      if (this.#body.done && !this.#bodyDropped) this.#events.onBodyEnd(this.#body.trailers);
      return true;
    } catch (error) {
      this.#bodyWanted = false;
      this.#events.onBodyFailed(error);
      return false;
    }
  }

  /** A piece of the body, from its reader. */
  data(piece: Buffer): void {
    if (!this.#bodyDropped) this.#events.onBodyData(piece);
  }
}
