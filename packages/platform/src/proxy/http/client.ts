/**
 * A client's HTTP/1 connection: reads one request after the other and writes their responses in order (RFC 9112 9).
 *
 *     idle --first byte--> head --whole--> exchange --sent--> idle, or lingering --> closed
 *
 * A client that ends its direction is taken to have left, as nginx and Go take it: `close()` looks no different
 * from here, and a machine should not be woken for nobody. After an upgrade either side may end by itself.
 */
import type { Socket } from "node:net";
import type { Field } from "../contract.ts";
import { admit, type Peer } from "./admission.ts";
import { bodyReader } from "./body.ts";
import type { BodyReader, BodySink } from "./body-reader.ts";
import type { ClientConnectionHandle, Engine } from "./engine.ts";
import { type ClientSide, Exchange } from "./exchange.ts";
import { NO_BODY } from "./fields.ts";
import { Malformed } from "./grammar.ts";
import { HeadReader } from "./head-reader.ts";
import type { Answer } from "./heads.ts";
import { logRefused } from "./log.ts";
import { Outbox } from "./outbox.ts";
import { asRefusal, refusal, refusalAnswer } from "./refusals.ts";
import { Reply } from "./reply.ts";
import { parseRequest, type RequestMessage } from "./request.ts";
import { openTunnel, type TunnelWatch } from "./tunnel.ts";

/** Empty lines before a request; some old clients send one behind a body (RFC 9112 2.2). */
const MOST_EMPTY_LINES = 4;
const NOTHING = Buffer.alloc(0);

export class ClientConnection implements ClientSide, ClientConnectionHandle, BodySink {
  readonly #engine: Engine;
  readonly #socket: Socket;
  readonly #peer: Peer;
  readonly #outbox: Outbox;
  readonly #reply: Reply;
  readonly #head: HeadReader;
  #state: "open" | "tunnel" | "lingering" | "closed" = "open";
  /** What was read and not yet understood: of a head, of a body that is held back, or of requests to come. */
  #ahead: Buffer = NOTHING;
  #emptyLines = 0;
  #advancing = false;
  /** How long what is waited for may take, in milliseconds, and until when; counted from the first tick. */
  #patienceMs = 0;
  #deadline: number | undefined;
  #message: RequestMessage | undefined;
  #exchange: Exchange | undefined;
  #body: BodyReader = bodyReader(NO_BODY, { headBytes: 0, headFields: 0 });
  #bodyWanted = false;
  #bodyDropped = false;
  #closing = false;
  #lingered = 0;

  constructor(engine: Engine, socket: Socket, peer: Peer) {
    this.#engine = engine;
    this.#socket = socket;
    this.#peer = peer;
    this.#head = new HeadReader(engine.limits.headBytes);
    this.#outbox = new Outbox(socket, engine.limits.bufferBytes, () => this.#exchange?.onClientRoom());
    this.#reply = new Reply(this.#outbox);
    this.#await(engine.limits.headMs);
    engine.connections.add(this);
    socket.on("data", (chunk) => this.#onData(chunk));
    socket.on("end", () => this.#onEnd());
    // What went wrong does not matter: "close" follows.
    socket.on("error", () => {});
    socket.on("close", () => this.#onClose());
  }

  // The socket's events.

  #onData(chunk: Buffer): void {
    if (this.#state === "lingering") {
      this.#lingered += chunk.length;
      if (this.#lingered > this.#engine.limits.lingerBytes) this.#socket.destroy();
      return;
    }
    this.#ahead = this.#ahead.length === 0 ? chunk : Buffer.concat([this.#ahead, chunk]);
    this.#advance();
  }

  #onEnd(): void {
    this.#exchange?.clientGone();
    this.#socket.destroy();
  }

  #onClose(): void {
    const exchange = this.#state === "tunnel" ? undefined : this.#exchange;
    this.#state = "closed";
    this.#engine.connections.delete(this);
    exchange?.clientGone();
  }

  // Reading.

  /** Understands as much as can be used now, and pauses the client when too much is left over. */
  #advance(): void {
    // A step may end an exchange, which wants to advance as well: the loop below is already at it.
    if (this.#advancing) return;
    this.#advancing = true;
    try {
      while (this.#state === "open" && this.#step());
    } finally {
      this.#advancing = false;
    }
    if (this.#state !== "open") return;
    const paused = this.#socket.isPaused();
    if (this.#ahead.length >= this.#engine.limits.aheadBytes) this.#socket.pause();
    else if (paused) this.#socket.resume();
  }

  /** False when more must happen first. */
  #step(): boolean {
    if (this.#ahead.length === 0) return false;
    if (this.#exchange === undefined) return this.#readHead();
    return this.#bodyWanted && !this.#body.done && this.#readBody();
  }

  #readHead(): boolean {
    if (!this.#head.begun) this.#await(this.#engine.limits.headMs);
    try {
      const end = this.#head.read(this.#ahead, 0);
      this.#ahead = end === -1 ? NOTHING : this.#ahead.subarray(end);
      if (end === -1) return false;
      const text = this.#head.take();
      if (text === "") this.#countEmptyLine();
      else this.#begin(parseRequest(text, this.#engine.limits));
      return true;
    } catch (error) {
      this.#refuse(error);
      return false;
    }
  }

  #countEmptyLine(): void {
    this.#emptyLines += 1;
    if (this.#emptyLines > MOST_EMPTY_LINES) throw new Malformed("A request begins with its line.");
  }

  #begin(message: RequestMessage): void {
    const { fields, origin } = admit(message.fields, this.#peer, this.#engine.trust);
    this.#emptyLines = 0;
    this.#message = message;
    message.fields = fields;
    this.#body = bodyReader(message.framing, this.#engine.limits);
    this.#bodyWanted = false;
    this.#bodyDropped = false;
    this.#closing = !message.keepAlive;
    this.#exchange = new Exchange(this.#engine, this, message, origin, this.#peer);
    this.#exchange.start();
  }

  #readBody(): boolean {
    const ahead = this.#ahead;
    this.#ahead = NOTHING;
    try {
      const end = this.#body.read(ahead, 0, this);
      if (end < ahead.length) this.#ahead = ahead.subarray(end);
      if (this.#body.done && !this.#bodyDropped) this.#exchange?.requestEnd(this.#body.trailers);
      return true;
    } catch (error) {
      this.#bodyWanted = false;
      this.#closing = true;
      this.#exchange?.requestFailed(error);
      return false;
    }
  }

  /** A piece of the body, from its reader. */
  data(piece: Buffer): void {
    if (!this.#bodyDropped) this.#exchange?.requestData(piece);
  }

  // The exchange's wishes.

  resumeBody(): void {
    this.#bodyWanted = true;
    this.#advance();
  }

  pauseBody(): void {
    this.#bodyWanted = false;
  }

  dropBody(): void {
    this.#bodyDropped = true;
    // What is already here is read to its end, if it has one, so that the connection can be kept.
    if (!this.#closing && this.#ahead.length > 0 && !this.#body.done) this.#readBody();
  }

  sendInterim(answer: Answer): boolean {
    return this.#reply.interim(answer, this.#version);
  }

  sendHead(answer: Answer): boolean {
    // A response that overtakes the request's body is the last one: the client may never send the rest.
    const closing = this.#closing || !this.#body.done || this.#engine.closing;
    this.#closing = this.#reply.head(answer, this.#version, closing);
    return !this.#outbox.full;
  }

  sendData(piece: Buffer): boolean {
    return this.#reply.data(piece);
  }

  sendEnd(trailers: readonly Field[], whenSent: () => void): void {
    this.#reply.end(trailers, () => {
      whenSent();
      this.#exchange = undefined;
      if (this.#closing) this.#linger();
      else this.#awaitNext();
    });
  }

  tunnel(answer: Answer, protocol: string, upstream: Socket, first: Buffer, watch: TunnelWatch): void {
    this.#state = "tunnel";
    this.#reply.switching(answer, protocol);
    this.#outbox.flush();
    this.#socket.removeAllListeners("data").removeAllListeners("end");
    openTunnel({
      client: this.#socket,
      upstream,
      fromClient: this.#ahead,
      fromUpstream: first,
      idleMs: this.#engine.limits.tunnelMs,
      ...watch,
    });
    this.#ahead = NOTHING;
  }

  /** A reset, not an end: a body that ends with its connection would otherwise look whole. */
  cut(): void {
    this.#exchange = undefined;
    this.#outbox.clear();
    if (this.#peer.secure) this.#socket.destroy();
    else this.#socket.resetAndDestroy();
  }

  // Between requests, and the end.

  #awaitNext(): void {
    if (this.#engine.closing) return this.#linger();
    this.#await(this.#engine.limits.idleMs);
    this.#advance();
  }

  /** Answers what never became a request. */
  #refuse(error: unknown): void {
    const refused = asRefusal(error);
    const { origin } = admit([], this.#peer, this.#engine.trust);
    const { answer, body } = refusalAnswer(refused, origin.requestId);
    this.#reply.head(answer, "1.1", true);
    this.#reply.data(body);
    logRefused(this.#engine, origin, refused, body.length);
    this.#linger();
  }

  /**
   * Ends our direction and reads on for a moment: closing while the client still sends would reset the
   * connection, and the response might be lost before it was read (RFC 9112 9.6).
   */
  #linger(): void {
    this.#state = "lingering";
    this.#ahead = NOTHING;
    this.#await(this.#engine.limits.lingerMs);
    this.#outbox.flush();
    this.#socket.end();
    this.#socket.resume();
  }

  finish(): void {
    if (this.#state === "open" && this.#exchange === undefined) this.#socket.destroy();
  }

  #await(ms: number): void {
    this.#patienceMs = ms;
    this.#deadline = undefined;
  }

  cutRequests(): void {
    this.#exchange?.cut();
  }

  tick(now: number): void {
    this.#exchange?.tick(now);
    this.#deadline ??= now + this.#patienceMs;
    if (this.#exchange !== undefined || now < this.#deadline) return;
    if (this.#state === "open" && this.#head.begun)
      this.#refuse(refusal("request_timeout", "The request's head did not come in time."));
    else this.#socket.destroy();
  }

  get #version(): string {
    return this.#message?.httpVersion ?? "1.1";
  }
}
