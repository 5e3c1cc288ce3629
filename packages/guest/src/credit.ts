/** Flow control of one stream: what the platform may send, and what it allows the guest to send. */
import { FrameType, MAX_PAYLOAD } from "./frame.ts";
import type { StreamLink } from "./protocol.ts";

/** How many bytes either side may send before the other has passed some on. The same as STREAM_WINDOW in streams.h. */
export const STREAM_WINDOW = 65_536;
/** Credit is returned in pieces of at least this many bytes, to save frames. */
const GRANT = STREAM_WINDOW / 4;

/** Sends bytes as far as the credit goes. The rest waits, and so does the writer. */
export class CreditedSender {
  readonly #link: StreamLink;
  #credit: number;
  #waiting: { bytes: Uint8Array; sent: () => void } | undefined;

  constructor(link: StreamLink, credit = STREAM_WINDOW) {
    this.#link = link;
    this.#credit = credit;
  }

  /** Calls `sent` once all bytes have been sent. Call it again only after that. */
  send(bytes: Uint8Array, sent: () => void): void {
    this.#waiting = { bytes, sent };
    this.#work();
  }

  /** Adds credit. A guest can't have passed on more than it was sent, so the credit never exceeds the window. */
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

/** What a guest is told when it sent more than its credit. */
export const TOO_MUCH = "more was sent than the credit allowed";

/** Counts what was received and passed on, and returns it to the guest as credit. */
export class CreditGiver {
  readonly #link: StreamLink;
  #owed = 0;

  constructor(link: StreamLink) {
    this.#link = link;
  }

  /** Counts received bytes. Returns false when the guest sent more than it was allowed to. */
  received(bytes: number): boolean {
    this.#owed += bytes;
    return this.#owed <= STREAM_WINDOW;
  }

  /** The reader asks for more, so it has what was received. A rest below one piece stays: it can't use up the window. */
  passedOn(): void {
    if (this.#owed < GRANT) return;
    const payload = Buffer.alloc(4);
    payload.writeUInt32LE(this.#owed);
    this.#owed = 0;
    this.#link.send(FrameType.credit, payload);
  }
}
