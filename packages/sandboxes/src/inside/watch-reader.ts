/** Reads what the agent's task `fs-watch` prints: `start`, then a record for each event. */
import type { Readable } from "node:stream";
import { create } from "@bufbuild/protobuf";
import { MOST_ATTRIBUTES } from "@hibernaut/guest";
import { Fields } from "./entry.ts";
import { EventType, type FilesystemEvent, FilesystemEventSchema } from "./protocol/files_pb.ts";

const TYPES: Record<string, EventType> = {
  create: EventType.CREATE,
  write: EventType.WRITE,
  remove: EventType.REMOVE,
  rename: EventType.RENAME,
  chmod: EventType.CHMOD,
};
/** Fields of an event without an entry: type, name, `0`. */
const SHORT = 3;
/** Fields of an entry before its attributes; the last of them is how many there are. */
const ENTRY = 9;
/** A record that is not whole after this many bytes is refused: a path has 4 KiB, all attributes of a file 64 KiB. */
const MOST_RECORD_BYTES = 256 * 1024;

/** An event, and how many bytes it took of the watch. */
export interface WatchedEvent {
  event: FilesystemEvent;
  bytes: number;
}

export class WatchReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #kept = Buffer.alloc(0);
  /** Where the next field of the record begins, and how many there are already: each byte is looked at once. */
  #from = 0;
  #fields = 0;
  /** How many fields the record has, as far as is known. Undefined for one that makes no sense. */
  #length: number | undefined = 1;

  constructor(output: Readable) {
    this.#chunks = (output as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  /** Resolves with whether the watch is established. */
  async start(): Promise<boolean> {
    const record = await this.#take(1);
    return record !== undefined && new Fields(record).next() === "start";
  }

  /** Ends with the watch, and before a record that makes no sense. */
  async *events(): AsyncGenerator<WatchedEvent, void> {
    for (let record = await this.#take(SHORT); record !== undefined; record = await this.#take(SHORT)) {
      const fields = new Fields(record);
      const type = TYPES[fields.next()] ?? EventType.UNSPECIFIED;
      const name = fields.next();
      const entry = fields.next() === "1" ? { entry: fields.entry() } : {};
      yield { event: create(FilesystemEventSchema, { type, name, ...entry }), bytes: record.length };
    }
  }

  /** Waits for a whole record of at least this many fields. Undefined at the end. */
  async #take(least: number): Promise<Buffer | undefined> {
    this.#length = least;
    for (;;) {
      if (this.#whole(least)) {
        const record = this.#kept.subarray(0, this.#from);
        this.#kept = this.#kept.subarray(this.#from);
        this.#from = 0;
        this.#fields = 0;
        return record;
      }
      if (this.#length === undefined || this.#kept.length > MOST_RECORD_BYTES) return undefined;
      const next = await this.#chunks.next();
      if (next.done === true) return undefined;
      this.#kept = Buffer.concat([this.#kept, next.value]);
    }
  }

  /** Looks at what has come since the last time. */
  #whole(least: number): boolean {
    for (let end = this.#next(); end >= 0; end = this.#next()) {
      const field = this.#kept.toString("utf8", this.#from, Math.min(end, this.#from + 16));
      this.#from = end + 1;
      this.#fields += 1;
      if (least === SHORT && this.#fields === SHORT && field === "1") this.#length = SHORT + ENTRY;
      if (least === SHORT && this.#fields === SHORT + ENTRY) {
        const attributes = Number(field);
        this.#length = attributes >= 0 && attributes <= MOST_ATTRIBUTES ? SHORT + ENTRY + 2 * attributes : undefined;
      }
      if (this.#fields === this.#length) return true;
      if (this.#length === undefined) return false;
    }
    return false;
  }

  /** Where the next field ends; -1 when that has not come yet. What was searched is not searched again. */
  #searched = 0;
  #next(): number {
    const end = this.#kept.indexOf(0, Math.max(this.#from, this.#searched));
    this.#searched = end < 0 ? this.#kept.length : 0;
    return end;
  }
}
