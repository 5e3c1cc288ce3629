/** A connection to an app: takes one request after the other, and reads their responses. */
import type { Socket } from "node:net";
import type { Field, Lease } from "../contract.ts";
import type { Intake } from "../intake.ts";
import { splice } from "../tcp/splice.ts";
import type { AppRequest, ResponseHandler } from "./app-request.ts";
import { bodyReader } from "./body.ts";
import type { BodyReader, BodySink } from "./body-reader.ts";
import { lastChunk, pushChunk } from "./chunked.ts";
import type { FieldMemory } from "./fields.ts";
import { Malformed } from "./grammar.ts";
import { HeadReader } from "./head-reader.ts";
import { type Origin, requestHead } from "./heads.ts";
import { type Limits, MOST_INTERIM } from "./limits.ts";
import { Outbox } from "./outbox.ts";
import { peerRequestHead } from "./peer-heads.ts";
import type { RequestMessage } from "./request.ts";
import { parseResponse, type ResponseMessage } from "./response.ts";

/**
 * Pieces of bodies up to this many bytes are copied, so that the buffer they were read into can be used again. A piece
 * that waits for a slow client keeps its whole buffer, which is at most a few times as large.
 */
const COPY_UP_TO = 16 * 1024;

interface UpstreamOptions {
  /** Opened with the intake. */
  socket: Socket;
  intake: Intake;
  lease: Pick<Lease, "address" | "port">;
  limits: Limits;
  onClose(connection: UpstreamConnection): void;
}

export class UpstreamConnection implements AppRequest, BodySink {
  readonly address: string;
  readonly port: number;
  /** Whether the connection carried a request before the current one: it may have died in the meantime. */
  reused = false;
  /** Whether any byte of the current response has arrived. */
  answering = false;
  /** The connection must not be used again: its machine leaves. */
  retired = false;
  /** When the connection became idle, on the clock of the sweep; undefined until the next sweep. */
  idleSince: number | undefined;
  readonly #outbox: Outbox;
  readonly #socket: Socket;
  readonly #intake: Intake;
  readonly #limits: Limits;
  readonly #head: HeadReader;
  readonly #lastHead: FieldMemory = { text: "", fields: [] };
  #body: BodyReader | undefined;
  #handler: ResponseHandler | undefined;
  #method = "";
  #mayUpgrade = false;
  #chunked = false;
  #interim = 0;
  #keepAlive = false;
  #untilClose = false;
  #error: Error | undefined;
  /** Whether a part of the current chunk was passed on without being copied. */
  #passedOn = false;

  constructor({ socket, intake, lease, limits, onClose }: UpstreamOptions) {
    this.address = lease.address;
    this.port = lease.port;
    this.#socket = socket;
    this.#intake = intake;
    this.#limits = limits;
    this.#head = new HeadReader(limits.headBytes);
    const onRoom = () => this.#handler?.onRoom();
    this.#outbox = new Outbox(socket, { bufferBytes: limits.bufferBytes, to: "app", onRoom });
    socket.on("end", () => this.#onEnd());
    socket.on("error", (error) => {
      this.#error = error;
    });
    socket.on("close", () => {
      onClose(this);
      this.#fail(this.#error ?? new Error("The app closed the connection."));
    });
    intake.start((chunk) => this.#take(chunk));
    socket.resume();
  }

  get usable(): boolean {
    return !this.retired && this.#socket.writable && this.#socket.readable;
  }

  get unseen(): boolean {
    return this.#outbox.written === 0;
  }

  get full(): boolean {
    return this.#outbox.full;
  }

  begin(
    handler: ResponseHandler,
    message: RequestMessage,
    origin: Origin,
    source: string | undefined,
    lease: Lease,
  ): void {
    this.#handler = handler;
    this.#method = message.method;
    this.#mayUpgrade = message.upgrade !== undefined;
    this.#chunked = message.framing.kind === "chunked";
    this.#interim = 0;
    this.#body = undefined;
    this.#keepAlive = false;
    this.#untilClose = false;
    this.answering = false;
    this.#outbox.written = 0;
    const toApp = lease.peer === undefined;
    this.#outbox.push(toApp ? requestHead(message, origin, source) : peerRequestHead(message, origin, lease, source));
  }

  sendBody(piece: Buffer): boolean {
    return this.#chunked ? pushChunk(this.#outbox, piece) : this.#outbox.push(piece);
  }

  sendEnd(trailers: readonly Field[]): void {
    if (this.#chunked) this.#outbox.push(lastChunk(trailers));
  }

  /** Whether the response, which has ended, allows another request on the connection. */
  get reusable(): boolean {
    return this.#keepAlive && this.usable;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  /** Closes the connection at once, without telling the handler. */
  destroy(): void {
    this.#handler = undefined;
    this.#outbox.clear();
    this.#socket.destroy();
  }

  /** The app is gone, and nobody will close its side: the handler is told at once. */
  abandon(reason: Error): void {
    this.#socket.destroy(reason);
  }

  data(piece: Buffer): void {
    const copied = piece.length <= COPY_UP_TO;
    if (!copied) this.#passedOn = true;
    this.#handler?.onData(copied ? Buffer.from(piece) : piece);
  }

  #take(chunk: Buffer): { more: boolean; done: boolean } {
    this.#passedOn = false;
    this.#onData(chunk);
    return { more: true, done: !this.#passedOn };
  }

  #onData(chunk: Buffer): void {
    // An idle connection has nothing to say: whatever this is, it must not become the response to a request.
    if (this.#handler === undefined) return this.destroy();
    this.answering = true;
    try {
      this.#read(chunk, this.#handler);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
      this.#socket.destroy();
    }
  }

  #read(chunk: Buffer, handler: ResponseHandler): void {
    for (let at = 0; this.#handler === handler; ) {
      if (this.#body === undefined) {
        at = at < chunk.length ? this.#head.read(chunk, at) : -1;
        if (at === -1) return;
        const response = parseResponse(this.#head.take(), this.#method, this.#limits, this.#lastHead);
        if (response.status === 101) return this.#upgrade(response, chunk.subarray(at));
        if (response.status < 200) {
          this.#interim += 1;
          if (this.#interim > MOST_INTERIM) throw new Malformed("The app sends too many interim responses.");
          handler.onInterim(response);
          continue;
        }
        this.#body = bodyReader(response.framing, this.#limits);
        this.#keepAlive = response.keepAlive;
        this.#untilClose = response.framing.kind === "close";
        handler.onHead(response);
      } else {
        at = this.#body.read(chunk, at, this);
      }
      if (this.#body.done && this.#handler === handler) {
        // Bytes after the end belong to no request.
        if (at < chunk.length) this.#keepAlive = false;
        return this.#finish();
      }
      if (at === chunk.length) return;
    }
  }

  #finish(): void {
    const handler = this.#handler;
    this.#handler = undefined;
    handler?.onEnd(this.#body?.trailers ?? []);
  }

  #upgrade(response: ResponseMessage, first: Buffer): void {
    if (!this.#mayUpgrade || response.upgrade === undefined)
      throw new Malformed("The app switches to a protocol that the client did not ask for.");
    const handler = this.#handler;
    this.#handler = undefined;
    this.#outbox.flush();
    this.#socket.removeAllListeners("end").pause();
    this.#passedOn = true;
    handler?.onUpgrade(response, { socket: this.#socket, first, move: splice(this.#intake) });
  }

  #onEnd(): void {
    // A body without a length ends here. Any other body that is not complete was cut short.
    if (this.#untilClose) this.#finish();
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    const handler = this.#handler;
    this.#handler = undefined;
    handler?.onFailed(error);
  }
}
