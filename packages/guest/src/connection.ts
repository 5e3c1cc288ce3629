/** Connections from programs in a guest to the local API. */
import { Duplex } from "node:stream";
import { CreditedSender, CreditGiver, STREAM_WINDOW, TOO_MUCH } from "./credit.ts";
import { GuestError } from "./error.ts";
import { type Frame, FrameType } from "./frame.ts";
import type { StreamEnd, StreamLink } from "./protocol.ts";

/** The platform's end of one connection. */
export class GuestConnection extends Duplex implements StreamEnd {
  readonly #link: StreamLink;
  readonly #sender: CreditedSender;
  readonly #giver: CreditGiver;
  #ended = false;
  #over = false;

  constructor(link: StreamLink) {
    super({ allowHalfOpen: true, readableHighWaterMark: STREAM_WINDOW / 2, writableHighWaterMark: STREAM_WINDOW });
    this.#link = link;
    this.#sender = new CreditedSender(link);
    this.#giver = new CreditGiver(link);
  }

  receive({ type, payload }: Frame): void {
    if (type === FrameType.data) this.#take(payload);
    if (type === FrameType.end) {
      this.#ended = true;
      this.push(null);
    }
    if (type === FrameType.credit && payload.length === 4) this.#sender.grant(payload.readUInt32LE());
    if (type === FrameType.reset) this.fail(new GuestError(payload.toString("utf8")));
  }

  fail(error: Error): void {
    this.#over = true;
    this.destroy(error);
  }

  #take(bytes: Buffer): void {
    if (!this.#giver.received(bytes.length)) this.destroy(new GuestError(TOO_MUCH));
    else if (!this.#ended) this.push(bytes);
  }

  override _read(): void {
    this.#giver.passedOn();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#sender.send(chunk, done);
  }

  override _final(done: () => void): void {
    this.#link.send(FrameType.end);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const whole = this.readableEnded && this.writableFinished;
    if (!this.#over && !whole) this.#link.send(FrameType.reset, Buffer.from("closed"));
    this.#link.forget();
    done(error);
  }
}
