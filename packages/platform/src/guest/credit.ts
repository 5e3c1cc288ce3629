/** Flow control of one stream: what may be sent, and what was taken in and is to be told. */
import { FrameType, MAX_PAYLOAD } from "./frame.ts";
import type { StreamLink } from "./protocol.ts";

/** Bytes that either side may send before the other has passed some on. The twin is STREAM_WINDOW in streams.h. */
export const STREAM_WINDOW = 65_536;
/** Credit is given back in pieces of at least this, to spare frames. */
const GRANT = STREAM_WINDOW / 4;

/** Sends bytes as far as credit goes; the rest waits, and whoever wrote it with it. */
export class CreditedSender {
  readonly #link: StreamLink;
  #credit = STREAM_WINDOW;
  #waiting: { bytes: Uint8Array; sent: () => void } | undefined;

  constructor(link: StreamLink) {
    this.#link = link;
  }

  /** Calls `sent` once all bytes went out. One at a time: the next only after that. */
  send(bytes: Uint8Array, sent: () => void): void {
    this.#waiting = { bytes, sent };
    this.#work();
  }

  /** No more than was sent can have been passed on: a guest that says so gets no more than a window. */
  grant(bytes: number): void {
    this.#credit = Math.min(this.#credit + bytes, STREAM_WINDOW);
    this.#work();
  }

  #work(): void {
    while (this.#waiting !== undefined) {
      const { bytes, sent } = this.#waiting;
      const size = Math.min(bytes.length, this.#credit, MAX_PAYLOAD);
      if (size > 0) {
        this.#credit -= size;
        this.#link.send(FrameType.data, bytes.subarray(0, size));
      }
      if (size < bytes.length) {
        this.#waiting = { bytes: bytes.subarray(size), sent };
        if (this.#credit === 0) return;
      } else {
        this.#waiting = undefined;
        sent();
      }
    }
  }
}

/** What a guest is told that sent more than its credit. */
export const TOO_MUCH = "more was sent than the credit allowed";

/** Counts what was received and passed on, and gives it back as credit. */
export class CreditGiver {
  readonly #link: StreamLink;
  #owed = 0;

  constructor(link: StreamLink) {
    this.#link = link;
  }

  /** False when the guest sent more than it was allowed to. */
  received(bytes: number): boolean {
    this.#owed += bytes;
    return this.#owed <= STREAM_WINDOW;
  }

  /** The reader wants more: what it has is passed on. A rest below the piece stays: it cannot use up the window. */
  passedOn(): void {
    if (this.#owed < GRANT) return;
    const payload = Buffer.alloc(4);
    payload.writeUInt32LE(this.#owed);
    this.#owed = 0;
    this.#link.send(FrameType.credit, payload);
  }
}
