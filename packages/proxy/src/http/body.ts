/** Reads the body of a message, however it is delimited (RFC 9112 6). */
import type { Field } from "../contract.ts";
import type { BodyReader, BodySink } from "./body-reader.ts";
import { ChunkedReader } from "./chunked.ts";
import type { Framing } from "./fields.ts";
import type { Limits } from "./limits.ts";

const NO_FIELDS: readonly Field[] = [];

class NoBody implements BodyReader {
  readonly done = true;
  readonly trailers = NO_FIELDS;

  read(_chunk: Buffer, from: number): number {
    return from;
  }
}

class LengthReader implements BodyReader {
  readonly trailers = NO_FIELDS;
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get done(): boolean {
    return this.#left === 0;
  }

  read(chunk: Buffer, from: number, sink: BodySink): number {
    const end = Math.min(chunk.length, from + this.#left);
    if (end === from) return from;
    this.#left -= end - from;
    sink.data(from === 0 && end === chunk.length ? chunk : chunk.subarray(from, end));
    return end;
  }
}

/** Ends with the connection, which the connection's owner notices. */
class CloseReader implements BodyReader {
  readonly done = false;
  readonly trailers = NO_FIELDS;

  read(chunk: Buffer, from: number, sink: BodySink): number {
    if (from < chunk.length) sink.data(from === 0 ? chunk : chunk.subarray(from));
    return chunk.length;
  }
}

const NONE = new NoBody();

/** Returns a reader for one body. */
export function bodyReader(framing: Framing, limits: Pick<Limits, "headBytes" | "headFields">): BodyReader {
  switch (framing.kind) {
    case "none":
      return NONE;
    case "length":
      return new LengthReader(framing.length);
    case "chunked":
      return new ChunkedReader(limits);
    case "close":
      return new CloseReader();
  }
}
