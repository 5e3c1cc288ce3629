/**
 * Streams between programs in a guest and the platform, over the one agent channel: connections to the local API
 * and commands. They outlive the channel: while the machine sleeps they wait, and go on after the resume.
 * `packages/guest/agent/streams.h` is the twin and says what each frame means.
 */
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { GuestCommand } from "./command.ts";
import { GuestConnection } from "./connection.ts";
import { GuestError } from "./error.ts";
import { type Frame, FrameType } from "./frame.ts";
import { encodeCommand } from "./records.ts";
import type { CommandSpec, SendFrame, StreamEnd, StreamLink } from "./protocol.ts";

/** Even numbers are ours; the low ones are the app's output. */
const FIRST_COMMAND = 16;
/** An agent makes fewer (CONNECTIONS_MAX in streams.h); a guest is not trusted to. */
const MOST_CONNECTIONS = 128;
const STREAM_TYPES: ReadonlySet<number> = new Set([
  FrameType.data,
  FrameType.end,
  FrameType.credit,
  FrameType.reset,
  FrameType.accept,
  FrameType.dataErr,
  FrameType.execExit,
]);

export class GuestStreams {
  /** Tells the agent whether it still talks to the one that knows its streams. */
  readonly session = randomBytes(8);
  /** A program connected to the local API. */
  onConnection: (connection: Duplex) => void = (connection) => connection.destroy();
  readonly #streams = new Map<number, StreamEnd>();
  #send: SendFrame | undefined;
  /** What waits for the guest to be reachable; bounded, see {@link #hold}. */
  #held: Parameters<SendFrame>[] = [];
  #nextCommand = FIRST_COMMAND;

  /** Frames that wait for the guest to be reachable. */
  get held(): number {
    return this.#held.length;
  }

  /** Streams that are open. */
  get open(): number {
    return this.#streams.size;
  }

  /** Commands among them. */
  get commands(): number {
    return [...this.#streams.values()].filter((stream) => stream instanceof GuestCommand).length;
  }

  /** Runs a command in the guest. Throws a RangeError when command and environment do not fit a frame. */
  run(spec: CommandSpec): GuestCommand {
    const payload = encodeCommand(spec);
    const id = this.#nextCommand;
    this.#nextCommand += 2;
    const command = new GuestCommand(this.#link(id));
    this.#streams.set(id, command);
    this.#emit(FrameType.exec, payload, id);
    return command;
  }

  /** Takes a frame; false when it is none of a stream. */
  receive(frame: Frame): boolean {
    if (!STREAM_TYPES.has(frame.type)) return false;
    if (frame.type === FrameType.accept) this.#accept(frame.stream);
    else {
      const stream = this.#streams.get(frame.stream);
      if (stream !== undefined) stream.receive(frame);
      // A stream of an earlier platform, or one that we ended while this was on its way.
      else if (this.#send !== undefined && (frame.type === FrameType.data || frame.type === FrameType.dataErr))
        this.#emit(FrameType.reset, Buffer.from("unknown stream"), frame.stream);
    }
    return true;
  }

  /** The guest can be reached from now on; what waited is sent. */
  flow(send: SendFrame): void {
    this.#send = send;
    const held = this.#held;
    this.#held = [];
    for (const frame of held) send(...frame);
  }

  /** Nothing more is sent, so that the guest can be captured with nothing on its way. */
  hold(): void {
    this.#send = undefined;
  }

  /** The guest is gone for good, and its ends of the streams with it. */
  reset(why: string): void {
    this.hold();
    this.#held = [];
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.fail(new GuestError(why));
  }

  #accept(id: number): void {
    if (id % 2 === 0 || this.#streams.has(id)) return; // no agent numbers them so
    const connections = [...this.#streams.values()].filter((stream) => stream instanceof GuestConnection);
    if (connections.length >= MOST_CONNECTIONS) {
      if (this.#send !== undefined) this.#emit(FrameType.reset, Buffer.from("too many connections"), id);
      return;
    }
    const connection = new GuestConnection(this.#link(id));
    this.#streams.set(id, connection);
    this.onConnection(connection);
  }

  #link(id: number): StreamLink {
    return {
      send: (type, payload = Buffer.alloc(0)) => {
        if (this.#streams.has(id)) this.#emit(type, payload, id);
      },
      forget: () => this.#streams.delete(id),
    };
  }

  #emit(...frame: Parameters<SendFrame>): void {
    if (this.#send === undefined) this.#hold(frame);
    else this.#send(...frame);
  }

  /** Data is bounded by its credit. A size takes the place of the one before, and a signal is pending once, as in a kernel. */
  #hold(frame: Parameters<SendFrame>): void {
    const [type, payload, stream] = frame;
    if (type === FrameType.resize || type === FrameType.signal)
      this.#held = this.#held.filter(([otherType, otherPayload, otherStream]) => {
        const same = type === FrameType.resize || Buffer.compare(otherPayload, payload) === 0;
        return otherStream !== stream || otherType !== type || !same;
      });
    this.#held.push(frame);
  }
}
