/** Streams as our parsers read them: what client.ts and upstream.ts do with the bytes, without sockets. */
import { type Field, ProxyRefusal } from "../../src/contract.ts";
import { bodyReader } from "../../src/http/body.ts";
import type { BodyReader } from "../../src/http/body-reader.ts";
import { Malformed } from "../../src/http/grammar.ts";
import { HeadReader } from "../../src/http/head-reader.ts";
import { parseRequest, type RequestMessage } from "../../src/http/request.ts";
import { parseResponse, type ResponseMessage } from "../../src/http/response.ts";

/** Small, so that inputs of a fuzz reach them. */
export const LIMITS = { headBytes: 1024, headFields: 12 };
/** As in client.ts. */
export const MOST_EMPTY_LINES = 4;

/** A stream of requests, or what an app answers to one request. */
export type Stream = { side: "request" } | { side: "response"; method: string };

/** One message of a stream. What was not reached is undefined. */
export interface Reading {
  request?: RequestMessage;
  response?: ResponseMessage;
  start: number;
  headEnd?: number;
  /** The index behind its last byte. */
  end?: number;
  body: Buffer;
  trailers: readonly Field[];
  refused?: string;
}

/** Reads pieces as they come; the state between two pieces is that of a connection. */
class StreamReader {
  readonly readings: Reading[] = [];
  readonly #stream: Stream;
  readonly #head = new HeadReader(LIMITS.headBytes);
  #body: BodyReader | undefined;
  #current: Reading | undefined;
  #emptyLines = 0;
  #over = false;

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  /** Takes the bytes that follow on the first `offset`. */
  take(piece: Buffer, offset: number): void {
    let at = 0;
    try {
      while (at < piece.length && !this.#over) {
        const reading = this.#reading(offset + at);
        at = this.#body === undefined ? this.#readHead(reading, piece, at, offset) : this.#readBody(reading, piece, at);
        if (this.#body?.done === true) this.#complete(reading, offset + at);
      }
    } catch (error) {
      if (!(error instanceof Malformed || error instanceof ProxyRefusal)) throw error;
      this.#reading(offset + at).refused = error.message;
      this.#over = true;
    }
  }

  /** The connection ends behind the first `offset` bytes. */
  end(offset: number): void {
    const reading = this.#current;
    if (reading?.response?.framing.kind === "close" && !this.#over) this.#complete(reading, offset);
  }

  #reading(start: number): Reading {
    if (this.#current !== undefined) return this.#current;
    this.#current = { start, body: Buffer.alloc(0), trailers: [] };
    this.readings.push(this.#current);
    return this.#current;
  }

  #readHead(reading: Reading, piece: Buffer, from: number, offset: number): number {
    const end = this.#head.read(piece, from);
    if (end === -1) return piece.length;
    const text = this.#head.take();
    if (this.#stream.side === "response") reading.response = parseResponse(text, this.#stream.method, LIMITS);
    else if (text !== "") reading.request = parseRequest(text, LIMITS);
    else {
      this.#emptyLines += 1;
      if (this.#emptyLines > MOST_EMPTY_LINES) throw new Malformed("Too many empty lines.");
      return end;
    }
    this.#emptyLines = 0;
    reading.headEnd = offset + end;
    const framing = (reading.request ?? reading.response)?.framing ?? { kind: "none" };
    this.#body = bodyReader(framing, LIMITS);
    return end;
  }

  #readBody(reading: Reading, piece: Buffer, from: number): number {
    const data = (part: Buffer) => {
      reading.body = Buffer.concat([reading.body, part]);
    };
    return this.#body?.read(piece, from, { data }) ?? from;
  }

  #complete(reading: Reading, end: number): void {
    const { request, response } = reading;
    reading.end = end;
    reading.trailers = this.#body?.trailers ?? [];
    // A connection that takes no other request, or becomes a tunnel, has no more messages; an app's final response
    // is the last to its request.
    if (response === undefined) this.#over = request?.keepAlive !== true || request.upgrade !== undefined;
    else this.#over = response.status >= 200 || response.status === 101;
    this.#body = undefined;
    this.#current = undefined;
  }
}

/** The bytes, cut at these places; those behind the end count from the beginning again. */
export function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((to, index) => bytes.subarray(places[index], to));
}

/** The messages of a stream that comes in pieces and then ends; the last of them may be incomplete or refused. */
export function readStream(stream: Stream, pieces: readonly Buffer[]): Reading[] {
  const reader = new StreamReader(stream);
  let offset = 0;
  for (const piece of pieces) {
    reader.take(piece, offset);
    offset += piece.length;
  }
  reader.end(offset);
  return reader.readings;
}
