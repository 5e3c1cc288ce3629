/** How the payload of a message is read, whatever delimits it. */
import type { Field } from "../contract.ts";

/** Takes the payload of a body, piece by piece. Must not keep what it does not pass on: pieces are views. */
export interface BodySink {
  data(piece: Buffer): void;
}

export interface BodyReader {
  /** Takes what belongs to the body, from `from` on, and returns the index behind it. */
  read(chunk: Buffer, from: number, sink: BodySink): number;
  readonly done: boolean;
  readonly trailers: readonly Field[];
}
