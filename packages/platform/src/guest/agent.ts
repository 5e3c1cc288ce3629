/** The platform's end of the agent channel: what may be asked of a guest, and what it reports. */
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { abortable } from "../lib/async.ts";
import { GuestError } from "./error.ts";
import { decodeListeners, type Listener } from "./listening.ts";
import { encodeFrame, type Frame, FrameReader, FrameType, MAX_PAYLOAD } from "./frame.ts";
import type { GuestConfig, GuestExit, Hello } from "./protocol.ts";
import { encodeRecords, milliseconds, nanoseconds } from "./records.ts";
import { GuestStreams } from "./streams.ts";

export { GuestError };

/** 1 is that of guest bundles before there were streams. */
const PROTOCOLS: readonly number[] = [1, 2];
const PHASES = ["waiting", "running", "ended"] as const;
/** Reseeds the guest's random generator: as much as its pool takes at once. */
const ENTROPY_BYTES = 64;
/** A clock that is off by more is set again, at once to the host's: the message may have waited for a busy host. */
const CLOCK_OFF_MS = 20;
const CLOCK_TRIES = 5;
/** Streams 0 to 2 are control and the app's output. */
const FIRST_STREAM = 3;

export class GuestAgent {
  onExit: (exit: GuestExit) => void = () => {};
  onLog: (stream: number, data: Buffer) => void = () => {};
  /** How many bytes the app has printed up to here, since its guest booted: what `onLog` was not given of them is lost. */
  onPrinted: (bytes: number) => void = () => {};
  /** Where programs listen now; told until the app is ready, by agents that tell it. */
  onListening: (listeners: Listener[]) => void = () => {};
  /** Something the agent refused; worth a line in the log. */
  onError: (message: string) => void = () => {};
  /** Commands and connections; they outlive this channel. */
  readonly streams: GuestStreams;
  readonly #channel: Duplex;
  readonly #reader = new FrameReader();
  readonly #waiting = new Map<number, Set<PromiseWithResolvers<Frame>>>();
  #ready = Promise.withResolvers<void>();
  #startFailure: string | undefined;
  #protocol = 0;

  constructor(channel: Duplex, streams = new GuestStreams()) {
    this.#channel = channel;
    this.streams = streams;
    this.#ready.promise.catch(() => {});
    channel.on("data", (chunk: Buffer) => {
      for (const frame of this.#reader.push(chunk)) this.#receive(frame);
    });
    channel.on("error", (error) => this.#end(error.message));
    channel.on("end", () => channel.destroy());
    channel.on("close", () => this.#end("the channel to the guest closed"));
  }

  /**
   * Asks the agent who it is. `resync` first pushes a frame that an earlier platform may have
   * left half sent out of the agent's reader; needed when adopting, costs a few milliseconds.
   */
  async hello(signal: AbortSignal, { resync = false } = {}): Promise<Hello> {
    const answer = this.#expect([FrameType.hello], signal);
    this.#send(FrameType.helloRequest, this.streams.session);
    if (resync) this.#send(FrameType.pad, Buffer.alloc(MAX_PAYLOAD));
    const { payload } = await answer;
    this.#protocol = payload.length < 28 ? 0 : payload.readUInt32LE(0);
    if (!PROTOCOLS.includes(this.#protocol)) throw new GuestError("the agent speaks another protocol");
    this.#flow();
    const hello: Hello = {
      phase: PHASES[payload[4] ?? 0] ?? "ended",
      ready: payload[5] === 1,
      exit: { code: payload.readUInt32LE(12), signal: payload.readUInt32LE(16), oom: payload[20] === 1 },
      dropped: payload.readUInt32LE(24),
      version: payload.toString("utf8", 28),
    };
    if (hello.ready) this.#ready.resolve();
    return hello;
  }

  /** Why the app cannot run; an image that cannot be mounted is reported before anyone asked for the app. */
  get startFailure(): string | undefined {
    return this.#startFailure;
  }

  /** Configures the guest and starts the app; settles when its program was executed. */
  async run(config: GuestConfig, signal: AbortSignal): Promise<void> {
    for (const chunk of encodeRecords(config)) this.#send(FrameType.set, chunk);
    const answer = this.#expect([FrameType.started, FrameType.startFailed], signal);
    this.#send(FrameType.run);
    const frame = await answer;
    if (frame.type === FrameType.startFailed) throw new GuestError(frame.payload.toString("utf8", 4));
  }

  /** Settles once every port asked for listens. */
  ready(signal: AbortSignal): Promise<void> {
    return abortable(this.#ready.promise, signal);
  }

  /** Whether the guest's bundle is new enough for commands and the local API. */
  get hasStreams(): boolean {
    return this.#protocol >= 2;
  }

  /**
   * Holds the app still, flushes the guest's disks and ends all talk. `awake` or `hello` end it. Returns by how many
   * milliseconds the guest's clock is ahead of the host's; 0 for agents that do not say.
   */
  async quiesce(signal: AbortSignal): Promise<number> {
    this.streams.hold();
    const answer = this.#expect([FrameType.quiesced], signal);
    this.#send(FrameType.quiesce);
    const { payload } = await answer;
    return payload.length < 8 ? 0 : milliseconds(payload) - Date.now();
  }

  /**
   * After a resume or a cancelled suspend: sets the clock and reseeds randomness, then lets the app go on. Says whether
   * the image has programs to run after a resume, and by how much the clock may be off, in milliseconds.
   *
   * @param stoodMs by how much the guest's clock fell behind while it stood, in milliseconds: put forward by that, it is
   * right however long the message takes. Without it it is set to the message's time, and again when that was too late.
   */
  async awake(signal: AbortSignal, stoodMs?: number): Promise<{ hooks: boolean; clockOffMs: number }> {
    for (let tries = 1; ; tries += 1) {
      const answer = this.#expect([FrameType.awoken], signal);
      const stood = tries === 1 && stoodMs !== undefined && stoodMs >= 0 ? [nanoseconds(stoodMs)] : [];
      const parts = [nanoseconds(Date.now()), this.streams.session, randomBytes(ENTROPY_BYTES), ...stood];
      this.#send(FrameType.awake, Buffer.concat(parts));
      const { payload } = await answer;
      this.#protocol = payload.length < 9 ? 1 : 2;
      this.#flow();
      if (payload.length < 9) return { hooks: false, clockOffMs: 0 };
      const clockOffMs = Math.round(Date.now() - milliseconds(payload));
      if (Math.abs(clockOffMs) <= CLOCK_OFF_MS || tries === CLOCK_TRIES) return { hooks: payload[8] === 1, clockOffMs };
    }
  }

  /** Asks the app to end, kills it after `graceMs`, then powers the guest off. Returns at once. */
  stop(signalNumber: number, graceMs: number): void {
    const payload = Buffer.alloc(8);
    payload.writeUInt32LE(signalNumber, 0);
    payload.writeUInt32LE(graceMs, 4);
    this.#send(FrameType.stop, payload);
  }

  /** A round trip through the agent. */
  async ping(signal: AbortSignal, payload: Uint8Array = new Uint8Array()): Promise<Buffer> {
    const answer = this.#expect([FrameType.pong], signal);
    this.#send(FrameType.ping, payload);
    return (await answer).payload;
  }

  close(): void {
    this.#channel.destroy();
  }

  #send(type: number, payload?: Uint8Array, stream?: number): void {
    if (this.#channel.writable) this.#channel.write(encodeFrame(type, payload, stream));
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
    if (frame.type === FrameType.error) this.onError(frame.payload.toString("utf8"));
    if (frame.type === FrameType.exit && frame.payload.length >= 9) {
      const { payload } = frame;
      this.onExit({ code: payload.readUInt32LE(0), signal: payload.readUInt32LE(4), oom: payload[8] === 1 });
    }
    if (frame.type === FrameType.startFailed) this.#startFailure = frame.payload.toString("utf8", 4);
  }

  #end(why: string): void {
    const error = new GuestError(why);
    this.#ready.reject(error);
    for (const waiters of this.#waiting.values()) for (const waiter of waiters) waiter.reject(error);
    this.#waiting.clear();
  }
}
