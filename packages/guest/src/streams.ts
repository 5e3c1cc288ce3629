/**
 * Streams between programs in a guest and the platform, over the one agent channel: connections to the local API, and
 * commands. They outlive the channel: while the machine sleeps they wait, and after a resume they continue.
 * `packages/guest/agent/streams.h` is the agent's side and says what each frame means.
 */
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { GuestCommand } from "./command.ts";
import { GuestConnection } from "./connection.ts";
import { GuestError } from "./error.ts";
import { type Frame, FrameType } from "./frame.ts";
import type { CommandSpec, KeptCommand, SendFrame, StreamEnd, StreamLink } from "./protocol.ts";
import { encodeCommand } from "./records.ts";

/** The platform gives its streams even numbers. The low numbers are the app's output. */
export const FIRST_COMMAND = 16;
/** The agent opens fewer (CONNECTIONS_MAX in streams.h), but a guest is not trusted to. */
export const MOST_CONNECTIONS = 128;
/**
 * How many frames, and bytes in them, may wait until the guest can be reached. Credit bounds what one stream has, but a
 * guest can end its streams and begin others. A command's whole window, typed character by character, fits.
 */
const MOST_HELD = 80_000;
export const MOST_HELD_BYTES = 16 * 1024 * 1024;
const STREAM_TYPES: ReadonlySet<number> = new Set([
  FrameType.data,
  FrameType.end,
  FrameType.credit,
  FrameType.reset,
  FrameType.accept,
  FrameType.dataErr,
  FrameType.execExit,
  FrameType.execStarted,
  FrameType.kept,
]);
/** Where the fields of F_KEPT are, in bytes: `enum kept_offset` in frame.h. The label is the rest of the payload. */
export const KeptOffset = { pid: 0, flags: 4, waiting: 5, session: 9, label: 17 } as const;
/** KEPT_ON_TERMINAL and KEPT_HAS_INPUT in frame.h. */
export const KeptFlag = { onTerminal: 1, hasInput: 2 } as const;
/** The agent keeps fewer (STREAMS_MAX in streams.h), and numbers its streams lower, but a guest is not trusted to. */
export const MOST_KEPT = 128;
const MOST_STREAM = 0x7fff_ffff;

/** What carries connections between machines and apps of their networks: this process. */
const THIS_PROCESS = randomBytes(8);

/** The streams of one guest. */
export class GuestStreams {
  /** By this the agent recognizes a platform that knows its streams. */
  #session = randomBytes(8);
  /** By this the agent recognizes that connections which the platform carried have ended in the machine's sleep. */
  #carrier = THIS_PROCESS;
  /** A program connected to the local API. */
  onConnection: (connection: Duplex) => void = (connection) => connection.destroy();
  /** A command that an earlier platform started, and kept with this label, continues. Called before the guest can be reached. */
  onKept: (command: GuestCommand, label: Buffer, about: KeptCommand) => void = (command) =>
    command.kill("nobody knows the command any more");
  readonly #streams = new Map<number, StreamEnd>();
  #send: SendFrame | undefined;
  /** Frames that wait until the guest can be reached. Bounded, see {@link #hold}. */
  #held: Parameters<SendFrame>[] = [];
  #heldBytes = 0;
  #nextCommand = FIRST_COMMAND;

  /** What the agent is told. */
  get session(): Buffer {
    return this.#session;
  }

  /** The same, for connections between the machine and apps of its network. */
  get carrier(): Buffer {
    return this.#carrier;
  }

  /** Has the guest told at its next wake that none of its connections to apps is left. */
  disconnect(): void {
    this.#carrier = randomBytes(8);
  }

  /** How many frames wait until the guest can be reached. */
  get held(): number {
    return this.#held.length;
  }

  /** How many streams are open. */
  get open(): number {
    return this.#streams.size;
  }

  /** How many commands are running that the guest must stay awake for. */
  get commands(): number {
    return [...this.#streams.values()].filter((stream) => stream instanceof GuestCommand && stream.active).length;
  }

  /** Runs a command in the guest. Throws a RangeError when command and environment are too long for a frame. */
  run(spec: CommandSpec): GuestCommand {
    const payload = encodeCommand(spec);
    const id = this.#nextCommand;
    this.#nextCommand += 2;
    const command = new GuestCommand(this.#link(id), { connection: spec.task === "connect" });
    this.#streams.set(id, command);
    this.#emit(FrameType.exec, payload, id);
    return command;
  }

  /** Takes a frame. Returns false when the frame does not belong to a stream. */
  receive(frame: Frame): boolean {
    if (!STREAM_TYPES.has(frame.type)) return false;
    if (frame.type === FrameType.accept) this.#accept(frame.stream);
    else if (frame.type === FrameType.kept) this.#keep(frame);
    else {
      const stream = this.#streams.get(frame.stream);
      if (stream !== undefined) stream.receive(frame);
      // A stream of an earlier platform, or one that was ended here while this frame was on its way.
      else if (this.#send !== undefined && (frame.type === FrameType.data || frame.type === FrameType.dataErr))
        this.#emit(FrameType.reset, Buffer.from("unknown stream"), frame.stream);
    }
    return true;
  }

  /** The guest can be reached from now on. Sends what waited. */
  flow(send: SendFrame): void {
    this.#send = send;
    const held = this.#held;
    this.#forgetHeld();
    for (const frame of held) send(...frame);
  }

  /** Sends nothing from now on, so that nothing is on its way when the guest is captured. */
  hold(): void {
    this.#send = undefined;
  }

  /** The guest is gone for good: all streams fail. */
  reset(why: string): void {
    this.hold();
    this.#forgetHeld();
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.fail(new GuestError(why));
  }

  /** The guest and its memory are gone: what continues from an earlier one has streams that nobody knows any more. */
  forget(why: string): void {
    this.reset(why);
    this.#session = randomBytes(8);
  }

  #accept(id: number): void {
    if (id % 2 === 0 || this.#streams.has(id)) return; // No agent uses such a number.
    const connections = [...this.#streams.values()].filter((stream) => stream instanceof GuestConnection);
    if (connections.length >= MOST_CONNECTIONS) {
      if (this.#send !== undefined) this.#emit(FrameType.reset, Buffer.from("too many connections"), id);
      return;
    }
    const connection = new GuestConnection(this.#link(id));
    this.#streams.set(id, connection);
    this.onConnection(connection);
  }

  #keep({ stream: id, payload }: Frame): void {
    if (id % 2 !== 0 || id < FIRST_COMMAND || id > MOST_STREAM || this.#streams.has(id)) return; // No agent uses such a number.
    if (payload.length < KeptOffset.label) return;
    // What an earlier platform was told may still be on its way.
    if (!payload.subarray(KeptOffset.session, KeptOffset.label).equals(this.#session)) return;
    const others = [...this.#streams.values()].filter((stream) => stream instanceof GuestCommand && stream.kept);
    if (others.length >= MOST_KEPT) return;
    const pid = payload.readUInt32LE(KeptOffset.pid);
    const flags = payload.readUInt8(KeptOffset.flags);
    const waiting = payload.readUInt32LE(KeptOffset.waiting);
    const command = new GuestCommand(this.#link(id), { kept: { pid, waiting } });
    this.#streams.set(id, command);
    this.#nextCommand = Math.max(this.#nextCommand, id + 2);
    this.onKept(command, payload.subarray(KeptOffset.label), {
      terminal: (flags & KeptFlag.onTerminal) !== 0,
      input: (flags & KeptFlag.hasInput) !== 0,
    });
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

  #forgetHeld(): void {
    this.#held = [];
    this.#heldBytes = 0;
  }

  /** Credit bounds the data of a stream. A new size replaces an older one, and a signal is pending only once, as in a kernel. */
  #hold(frame: Parameters<SendFrame>): void {
    const [type, payload, stream] = frame;
    if (type === FrameType.resize || type === FrameType.signal)
      this.#held = this.#held.filter(([otherType, otherPayload, otherStream]) => {
        const same = type === FrameType.resize || Buffer.compare(otherPayload, payload) === 0;
        return otherStream !== stream || otherType !== type || !same;
      });
    this.#held.push(frame);
    this.#heldBytes += payload.length;
    if (this.#held.length > MOST_HELD || this.#heldBytes > MOST_HELD_BYTES)
      this.reset("the guest began more streams than it may while it could not be reached");
  }
}
