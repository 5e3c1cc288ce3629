/** The platform's end of the agent channel: what the platform can ask of a guest, and what the guest reports. */
import { randomBytes } from "node:crypto";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { APP_SUBNET } from "@hibernaut/domain/app-network";
import { abortable } from "@hibernaut/lib/async";
import { wipe, wiping } from "@hibernaut/lib/wipe";
import { GuestError } from "./error.ts";
import { encodeFrame, type Frame, FrameReader, FrameType, MAX_PAYLOAD } from "./frame.ts";
import { decodeExit, decodeHello, EXIT_BYTES, STREAMS_PROTOCOL, SWAP_PROTOCOL } from "./hello.ts";
import { decodeListeners, type Listener } from "./listening.ts";
import { ChannelPace } from "./pace.ts";
import type { GuestConfig, GuestExit, GuestIdentity, Hello } from "./protocol.ts";
import { encodeIdentity, encodeRecords, encodeSubnet, milliseconds, nanoseconds } from "./records.ts";
import { GuestStreams } from "./streams.ts";

/** Reseeds the guest's random number generator, which takes no more than this at once. */
export const ENTROPY_BYTES = 64;
/** A clock that is off by more is set again, to the host's time: on a busy host the first message may have been late. */
const CLOCK_OFF_MS = 20;
const CLOCK_TRIES = 5;
/** Where the apps of networks are reached, whose connections the platform carries. */
const APPS = encodeSubnet(APP_SUBNET);
/** Streams 0 to 2 are control, and the app's two outputs. */
const FIRST_STREAM = 3;
/** How many bytes a guest may leave unread: more than all streams may have on their way, each with its window. */
export const MOST_UNREAD_BYTES = 16 * 1024 * 1024;
/** How much of a guest's own words is repeated, in characters: enough for an error with a path in it. */
const LONGEST_TEXT = 1000;

/** See {@link GuestAgent.awake}. */
interface Wake {
  stoodMs?: number | undefined;
  carried?: "outward" | "both" | undefined;
}

/** Talks to the agent of one guest. Every method that waits rejects with a {@link GuestError} when the channel closes. */
export class GuestAgent {
  /** The app ended. */
  onExit: (exit: GuestExit) => void = () => {};
  /** The app printed something: on stream 1 (stdout) or 2 (stderr). */
  onLog: (stream: number, data: Buffer) => void = () => {};
  /** How many bytes the app has printed since its guest booted. Those that `onLog` was not called with are lost. */
  onPrinted: (bytes: number) => void = () => {};
  /** Where programs listen now. Agents of older guest bundles don't report it, and no agent does once the app is ready. */
  onListening: (listeners: Listener[]) => void = () => {};
  /** The agent refused something, which deserves a line in the log. */
  onError: (message: string) => void = () => {};
  /** The platform has ended the channel, because of what the guest does. Nothing is asked of this guest any more. */
  onBroken: (why: string) => void = () => {};
  /** Commands and connections. They outlive this channel. */
  readonly streams: GuestStreams;
  readonly #channel: Duplex;
  readonly #reader = new FrameReader();
  readonly #pace = new ChannelPace();
  #resting: NodeJS.Timeout | undefined;
  readonly #waiting = new Map<number, Set<PromiseWithResolvers<Frame>>>();
  #ready = Promise.withResolvers<void>();
  #startFailure: string | undefined;
  #protocol = 0;

  constructor(channel: Duplex, streams = new GuestStreams()) {
    this.#channel = channel;
    this.streams = streams;
    this.#ready.promise.catch(() => {});
    channel.on("data", (chunk: Buffer) => this.#read(chunk));
    channel.on("error", (error) => this.#end(error.message));
    channel.on("end", () => channel.destroy());
    channel.on("close", () => this.#end("the channel to the guest closed"));
  }

  /**
   * Asks the agent for its account of itself. With `resync`, a frame that an earlier platform may have sent in part
   * is pushed out of the agent's reader first: you need that when you adopt a guest, and it takes a few milliseconds.
   */
  async hello(signal: AbortSignal, { resync = false } = {}): Promise<Hello> {
    const answer = this.#expect([FrameType.hello], signal);
    this.#send(FrameType.helloRequest, Buffer.concat([this.streams.session, this.streams.carrier]));
    if (resync) this.#send(FrameType.pad, Buffer.alloc(MAX_PAYLOAD));
    const { protocol, hello } = decodeHello((await answer).payload);
    this.#protocol = protocol;
    this.#flow();
    if (hello.ready) this.#ready.resolve();
    return hello;
  }

  /** Why the app can't run. The agent reports an image that it can't mount before it is asked to start the app. */
  get startFailure(): string | undefined {
    return this.#startFailure;
  }

  /** Configures the guest and starts the app. Resolves when the app's program has been executed. */
  async run(config: GuestConfig, signal: AbortSignal): Promise<void> {
    const understood = this.#protocol >= SWAP_PROTOCOL ? config : { ...config, swapMb: 0 };
    for (const chunk of encodeRecords(understood)) wiping(chunk, () => this.#sendSecret(FrameType.set, chunk));
    const answer = this.#expect([FrameType.started, FrameType.startFailed], signal);
    this.#send(FrameType.run);
    const frame = await answer;
    if (frame.type === FrameType.startFailed) throw new GuestError(textOf(frame.payload.subarray(4)));
  }

  /** Resolves as soon as the app listens on every port of the configuration. */
  ready(signal: AbortSignal): Promise<void> {
    return abortable(this.#ready.promise, signal);
  }

  /** Whether the guest's bundle is new enough for commands and the local API. */
  get hasStreams(): boolean {
    return this.#protocol >= STREAMS_PROTOCOL;
  }

  /**
   * Freezes the app and flushes the guest's disks. Nothing is sent either way until you call `awake` or `hello`.
   * Returns by how many milliseconds the guest's clock is ahead of the host's, or 0 if the agent doesn't report it.
   */
  async quiesce(signal: AbortSignal): Promise<number> {
    this.streams.hold();
    const answer = this.#expect([FrameType.quiesced], signal);
    this.#send(FrameType.quiesce);
    const { payload } = await answer;
    return payload.length < 8 ? 0 : milliseconds(payload) - Date.now();
  }

  /**
   * Ends a quiesce, after a resume or a cancelled suspend: sets the clock, reseeds randomness, and lets the app
   * continue. Returns whether the image has hooks to run after a resume, and by how many milliseconds the clock may
   * be off.
   *
   * @param stoodMs how many milliseconds the guest's clock fell behind in its sleep. Moved forward by that, the
   * clock is right however long the message takes. Without it, the clock is set to the time of the message, and set
   * again if the message took too long.
   * @param carried which connections are reset that were open under another {@link GuestStreams.carrier}: those to apps of the
   * machine's network, or those from the gateway to its services, too. By default, none.
   */
  async awake(signal: AbortSignal, { stoodMs, carried }: Wake = {}): Promise<{ hooks: boolean; clockOffMs: number }> {
    for (let tries = 1; ; tries += 1) {
      const answer = this.#expect([FrameType.awoken], signal);
      const once: Buffer[] = [];
      if (stoodMs !== undefined && stoodMs >= 0) once.push(nanoseconds(stoodMs));
      // What is not known counts as nothing: the clock is set again if it is off then.
      else if (carried !== undefined) once.push(nanoseconds(0));
      if (carried !== undefined) once.push(this.streams.carrier, APPS, Buffer.of(carried === "both" ? 1 : 0));
      // A clock that is still off takes the time of the message, whatever it says itself.
      const rest = tries === 1 ? once : [];
      const parts = [nanoseconds(Date.now()), this.streams.session, randomBytes(ENTROPY_BYTES), ...rest];
      this.#send(FrameType.awake, Buffer.concat(parts));
      const { payload } = await answer;
      this.#protocol = payload.length < 9 ? 1 : STREAMS_PROTOCOL;
      this.#flow();
      if (payload.length < 9) return { hooks: false, clockOffMs: 0 };
      const clockOffMs = Math.round(Date.now() - milliseconds(payload));
      if (Math.abs(clockOffMs) <= CLOCK_OFF_MS || tries === CLOCK_TRIES) return { hooks: payload[8] === 1, clockOffMs };
    }
  }

  /**
   * Tells a fork who it is, before `awake`: until then, its agent lets nothing of the app's run. It reseeds randomness, ends
   * connections, and takes its name and addresses. Does nothing in a machine that is this one already. Returns
   * whether the image has hooks to run after a fork. Rejects with a {@link GuestError} when the guest cannot: then it must
   * not run.
   */
  async become(identity: GuestIdentity, signal: AbortSignal): Promise<{ hooks: boolean }> {
    const answer = this.#expect([FrameType.became], signal);
    const entropy = randomBytes(ENTROPY_BYTES);
    for (const chunk of encodeIdentity(identity, entropy)) wiping(chunk, () => this.#sendSecret(FrameType.set, chunk));
    wipe(entropy);
    this.#send(FrameType.become);
    const { payload } = await answer;
    if (payload.length < 5 || payload.readUInt32LE() !== 0)
      throw new GuestError(`the fork did not take its own identity: ${textOf(payload.subarray(5))}`);
    return { hooks: payload[4] === 1 };
  }

  /** Sends the app a signal, kills it after `graceMs`, then powers the guest off. Returns immediately. */
  stop(signalNumber: number, graceMs: number): void {
    const payload = Buffer.alloc(8);
    payload.writeUInt32LE(signalNumber, 0);
    payload.writeUInt32LE(graceMs, 4);
    this.#send(FrameType.stop, payload);
  }

  /** Sends a payload and resolves with it when the agent has returned it. For tests. */
  async ping(signal: AbortSignal, payload: Uint8Array = new Uint8Array()): Promise<Buffer> {
    const answer = this.#expect([FrameType.pong], signal);
    this.#send(FrameType.ping, payload);
    return (await answer).payload;
  }

  /** Closes the channel. The guest keeps running. */
  close(): void {
    this.#channel.destroy();
  }

  #send(type: number, payload?: Uint8Array, stream?: number): void {
    if (this.#maySend()) this.#channel.write(encodeFrame(type, payload, stream));
  }

  /** Overwrites the frame once the kernel has it, or the channel has ended. Other streams than sockets pass on the frame itself. */
  #sendSecret(type: number, payload: Uint8Array): void {
    if (!this.#maySend()) return;
    const frame = encodeFrame(type, payload);
    this.#channel.write(frame, () => {
      if (this.#channel instanceof Socket) wipe(frame);
    });
  }

  #maySend(): boolean {
    if (!this.#channel.writable) return false;
    if (this.#channel.writableLength <= MOST_UNREAD_BYTES) return true;
    this.#break("the guest does not read what it is sent");
    return false;
  }

  #break(why: string): void {
    this.#channel.destroy(new GuestError(`the channel to the guest was ended: ${why}`));
    this.onBroken(why);
  }

  #flow(): void {
    if (this.hasStreams) this.streams.flow((type, payload, stream) => this.#send(type, payload, stream));
  }

  #expect(types: number[], signal: AbortSignal): Promise<Frame> {
    const waiter = Promise.withResolvers<Frame>();
    for (const type of types) {
      const waiters = this.#waiting.get(type) ?? new Set();
      this.#waiting.set(type, waiters.add(waiter));
    }
    if (this.#channel.destroyed) waiter.reject(new GuestError("the channel to the guest is closed"));
    const forget = () => {
      for (const type of types) this.#waiting.get(type)?.delete(waiter);
    };
    return abortable(waiter.promise, signal).finally(forget);
  }

  #read(chunk: Buffer): void {
    const noise = this.#reader.skipped;
    const frames = this.#reader.push(chunk);
    this.#channel.cork(); // what is answered goes out in one piece
    for (const frame of frames) this.#receive(frame);
    this.#channel.uncork();
    const restMs = this.#pace.handled(frames, this.#reader.skipped - noise);
    if (restMs === 0) return;
    this.#channel.pause();
    this.#resting = setTimeout(() => this.#channel.resume(), restMs);
  }

  #receive(frame: Frame): void {
    if (frame.stream >= FIRST_STREAM && this.streams.receive(frame)) return;
    const waiters = this.#waiting.get(frame.type);
    const waiter = waiters?.values().next().value;
    if (waiter !== undefined) {
      waiters?.delete(waiter);
      waiter.resolve(frame);
    }
    if (frame.type === FrameType.ready) this.#ready.resolve();
    if (frame.type === FrameType.listening) this.onListening(decodeListeners(frame.payload));
    if (frame.type === FrameType.log) this.onLog(frame.stream, frame.payload);
    if (frame.type === FrameType.printed && frame.payload.length === 8)
      this.onPrinted(Number(frame.payload.readBigUInt64LE()));
    if (frame.type === FrameType.error) this.onError(textOf(frame.payload));
    if (frame.type === FrameType.exit && frame.payload.length >= EXIT_BYTES) this.onExit(decodeExit(frame.payload));
    if (frame.type === FrameType.startFailed) this.#startFailure = textOf(frame.payload.subarray(4));
  }

  #end(why: string): void {
    clearTimeout(this.#resting);
    const error = new GuestError(why);
    this.#ready.reject(error);
    for (const waiters of this.#waiting.values()) for (const waiter of waiters) waiter.reject(error);
    this.#waiting.clear();
  }
}

/** What a guest says in a frame, as far as it is repeated. */
function textOf(bytes: Buffer): string {
  const text = bytes.toString("utf8", 0, 4 * LONGEST_TEXT);
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}...` : text;
}
