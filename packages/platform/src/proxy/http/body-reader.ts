/** How the body of a message is read, whatever delimits it. */
import type { Field } from "../contract.ts";

/** Takes the payload of a body, piece by piece. Must not keep pieces, which are views of a buffer that is reused. */
export interface BodySink {
  data(piece: Buffer): void;
}

export interface BodyReader {
  /** Reads what belongs to the body, beginning at `from`. Returns the index after it. */
  read(chunk: Buffer, from: number, sink: BodySink): number;
  readonly done: boolean;
  readonly trailers: readonly Field[];
}
