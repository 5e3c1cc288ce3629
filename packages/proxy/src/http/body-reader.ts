/** How the body of a message is read, whatever delimits it. */
import type { Field } from "../contract.ts";

/** Takes the payload of a body, piece by piece. Pieces are views of what was read. */
export interface BodySink {
  data(piece: Buffer): void;
}

export interface BodyReader {
  /** Reads what belongs to the body, beginning at `from`. Returns the index after it. */
  read(chunk: Buffer, from: number, sink: BodySink): number;
  readonly done: boolean;
  readonly trailers: readonly Field[];
}
