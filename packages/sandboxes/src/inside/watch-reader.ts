/** Reads what the agent's task `fs-watch` prints: `start`, then a record for each event. */
import type { Readable } from "node:stream";
import { create } from "@bufbuild/protobuf";
import { Fields } from "./entry.ts";
import { EventType, type FilesystemEvent, FilesystemEventSchema } from "./protocol/files_pb.js";

const TYPES: Record<string, EventType> = {
  create: EventType.CREATE,
  write: EventType.WRITE,
  remove: EventType.REMOVE,
  rename: EventType.RENAME,
  chmod: EventType.CHMOD,
};
/** Fields of an event without an entry: type, name, `0`. */
const SHORT = 3;
/** Fields of an entry before its attributes, and the place of their number. */
const ENTRY = 9;
/** A record that is not whole after this many bytes is refused. */
const MOST_RECORD_BYTES = 1024 * 1024;

export class WatchReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #kept = Buffer.alloc(0);

  constructor(output: Readable) {
    this.#chunks = (output as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  /** Resolves with whether the watch is established. */
  async start(): Promise<boolean> {
    const fields = await this.#take(() => 1);
    return fields?.next() === "start";
  }

  async *events(): AsyncGenerator<FilesystemEvent, void> {
    for (let fields = await this.#take(lengthOf); fields !== undefined; fields = await this.#take(lengthOf)) {
      const type = TYPES[fields.next()] ?? EventType.UNSPECIFIED;
      const name = fields.next();
      const entry = fields.next() === "1" ? { entry: fields.entry() } : {};
      yield create(FilesystemEventSchema, { type, name, ...entry });
    }
  }

  /** Waits for a whole record, whose length in fields follows from those that are there. Undefined at the end. */
  async #take(length: (fields: readonly string[]) => number | undefined): Promise<Fields | undefined> {
    for (;;) {
      const bytes = recordIn(this.#kept, length);
      if (bytes !== undefined) {
        const record = this.#kept.subarray(0, bytes);
        this.#kept = this.#kept.subarray(bytes);
        return new Fields(record);
      }
      const next = await this.#chunks.next();
      if (next.done === true || this.#kept.length > MOST_RECORD_BYTES) return undefined;
      this.#kept = Buffer.concat([this.#kept, next.value]);
    }
  }
}

/** Returns how many bytes the first record has, or undefined when it is not whole yet. */
function recordIn(bytes: Buffer, length: (fields: readonly string[]) => number | undefined): number | undefined {
  const fields: string[] = [];
  for (let from = 0, end = bytes.indexOf(0); end >= 0; from = end + 1, end = bytes.indexOf(0, from)) {
    fields.push(bytes.toString("utf8", from, end));
    if (fields.length === length(fields)) return end + 1;
  }
  return undefined;
}

/** How many fields the record of an event has, once enough of it is known. */
function lengthOf(fields: readonly string[]): number | undefined {
  if (fields.length < SHORT) return undefined;
  if (fields[SHORT - 1] !== "1") return SHORT;
  const attributes = fields[SHORT + ENTRY - 1];
  return attributes === undefined ? undefined : SHORT + ENTRY + 2 * (Number(attributes) || 0);
}
