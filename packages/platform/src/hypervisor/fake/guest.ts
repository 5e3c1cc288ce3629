/** A guest without a computer: speaks the agent's protocol and counts requests, like the counter app. */
import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { encodeFrame, type Frame, FrameReader, FrameType } from "../../guest/frame.ts";

/** What the memory of a fake guest holds. */
export interface FakeGuestState {
  nonce: string;
  count: number;
  phase: 0 | 1 | 2;
  ready: boolean;
  exitCode: number;
  /** Guest clock minus host clock, in milliseconds. */
  clockOffsetMs: number;
}

export class FakeGuest {
  state: FakeGuestState = { nonce: randomUUID(), count: 0, phase: 0, ready: false, exitCode: 0, clockOffsetMs: 0 };
  /** CPUs stand still: nothing is answered until `resume`. */
  #paused = false;
  #channel: Duplex | undefined;
  #pending: Frame[] = [];
  #quiet = false;
  readonly #powerOff: () => void;

  constructor(powerOff: () => void) {
    this.#powerOff = powerOff;
  }

  connect(channel: Duplex): void {
    this.#channel?.destroy();
    this.#channel = channel;
    const reader = new FrameReader();
    channel.on("error", () => {});
    channel.on("data", (chunk: Buffer) => {
      this.#pending.push(...reader.push(chunk));
      this.#work();
    });
  }

  disconnect(): void {
    this.#channel?.destroy();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#work();
  }

  /** The app answers a request; undefined while the guest stands still. */
  request(): { nonce: string; count: number } | undefined {
    if (this.#paused || this.state.phase !== 1) return undefined;
    this.state.count += 1;
    return { nonce: this.state.nonce, count: this.state.count };
  }

  /** The app ends by itself. */
  exit(code: number): void {
    if (this.state.phase === 2) return;
    this.state = { ...this.state, phase: 2, exitCode: code };
    if (!this.#quiet) this.#send(FrameType.exit, this.#exitPayload());
  }

  #work(): void {
    while (!this.#paused && this.#pending.length > 0) this.#handle(this.#pending.shift() as Frame);
  }

  #handle({ type, payload, stream }: Frame): void {
    // Every command is `cat`: what comes in goes out, and it ends with its input.
    if (type === FrameType.data) this.#echo(payload, stream);
    if (type === FrameType.end) this.#send(FrameType.execExit, Buffer.alloc(9), stream);
    if (type === FrameType.helloRequest) this.#hello();
    if (type === FrameType.ping) this.#send(FrameType.pong, payload);
    if (type === FrameType.run) {
      this.state = { ...this.state, phase: 1, ready: true };
      this.#send(FrameType.started, Buffer.alloc(4));
      this.#send(FrameType.ready);
    }
    if (type === FrameType.quiesce) {
      this.#send(FrameType.quiesced);
      this.#quiet = true;
    }
    if (type === FrameType.awake) {
      this.#quiet = false;
      this.state.clockOffsetMs = Number(payload.readBigUInt64LE() / 1_000_000n) - Date.now();
      this.#send(FrameType.awoken, Buffer.concat([payload.subarray(0, 8), Buffer.alloc(1)]));
    }
    if (type === FrameType.stop) {
      this.exit(0);
      setImmediate(this.#powerOff);
    }
  }

  #echo(bytes: Buffer, stream: number): void {
    const credit = Buffer.alloc(4);
    credit.writeUInt32LE(bytes.length);
    this.#send(FrameType.credit, credit, stream);
    this.#send(FrameType.data, bytes, stream);
  }

  #hello(): void {
    this.#quiet = false;
    const payload = Buffer.alloc(28);
    payload.writeUInt32LE(2, 0);
    payload[4] = this.state.phase;
    payload[5] = this.state.ready ? 1 : 0;
    this.#exitPayload().copy(payload, 12);
    this.#send(FrameType.hello, Buffer.concat([payload, Buffer.from("fake")]));
  }

  #exitPayload(): Buffer {
    const payload = Buffer.alloc(9);
    payload.writeUInt32LE(this.state.exitCode, 0);
    return payload;
  }

  #send(type: number, payload?: Buffer, stream?: number): void {
    if (this.#channel?.writable) this.#channel.write(encodeFrame(type, payload, stream));
  }
}
