/**
 * A client's HTTP/1 connection: reads one request after the other and writes their responses in order (RFC 9112 9).
 *
 *     idle --first byte--> head --complete--> exchange --sent--> idle, or lingering --> closed
 *
 * A client that ends its direction is taken to have left, as nginx and Go do it: `close()` looks no different from
 * here, and a machine should not wake for nobody. After an upgrade, either side may end by itself.
 */
import type { Socket } from "node:net";
import type { Seat } from "@hibernaut/connections";
import type { Field } from "../contract.ts";
import type { Peer } from "./admission.ts";
import type { Upgraded } from "./app-request.ts";
import type { ClientSide, RequestHandler } from "./client-side.ts";
import type { ClientConnectionHandle, Engine } from "./engine.ts";
import type { FieldMemory } from "./fields.ts";
import type { Answer } from "./heads.ts";
import { Outbox } from "./outbox.ts";
import { proxyRefusal } from "./refusals.ts";
import { refuseEarly } from "./refuse-early.ts";
import { Reply } from "./reply.ts";
import type { RequestMessage } from "./request.ts";
import { RequestReader, type RequestReaderEvents } from "./request-reader.ts";
import { openTunnel, type TunnelWatch } from "./tunnel.ts";

export class ClientConnection implements ClientSide, ClientConnectionHandle, RequestReaderEvents {
  readonly #engine: Engine;
  readonly #socket: Socket;
  readonly #peer: Peer;
  /** Its place among all connections. Undefined for one of another host, which has none. */
  readonly #seat: Seat | undefined;
  readonly #reader: RequestReader;
  readonly #outbox: Outbox;
  readonly #reply: Reply;
  readonly #lastHead: FieldMemory = { text: "", fields: [] };
  #state: "open" | "tunnel" | "lingering" | "closed" = "open";
  /** How long what the connection waits for may take, in milliseconds, and until when. Counted from the first tick. */
  #patienceMs = 0;
  #deadline: number | undefined;
  #httpVersion = "1.1";
  /** The handler of the current request. */
  #request: RequestHandler | undefined;
  /** Whether the connection ends after the current response. */
  #closing = false;
  #lingered = 0;

  constructor(engine: Engine, socket: Socket, peer: Peer, seat: Seat | undefined) {
    this.#engine = engine;
    this.#socket = socket;
    this.#peer = peer;
    this.#seat = seat;
    this.#reader = new RequestReader(engine.limits, this);
    const onRoom = () => this.#request?.onClientRoom();
    this.#outbox = new Outbox(socket, { bufferBytes: engine.limits.bufferBytes, to: "client", onRoom });
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
    this.#reader.push(chunk);
    this.#advance();
  }

  #onEnd(): void {
    this.#request?.clientGone();
    this.#socket.destroy();
  }

  #onClose(): void {
    const request = this.#state === "tunnel" ? undefined : this.#request;
    this.#state = "closed";
    this.#engine.connections.delete(this);
    request?.clientGone();
  }

  /** Reads as much as can be used now, and pauses the client if too much is left over. */
  #advance(): void {
    if (!this.#reader.advance() || this.#state !== "open") return;
    const paused = this.#socket.isPaused();
    if (this.#reader.full) this.#socket.pause();
    else if (paused) this.#socket.resume();
  }

  // The reader's events.

  get reading(): boolean {
    return this.#state === "open";
  }

  onHeadBegun(): void {
    this.#await(this.#engine.limits.headMs);
  }

  onHead(head: string): void {
    this.#engine.serve(this, this.#engine.parse(head, this.#lastHead), this.#peer);
  }

  onHeadFailed(error: unknown): void {
    this.#refuse(error);
  }

  onBodyData(piece: Buffer): void {
    this.#request?.requestData(piece);
  }

  onBodyEnd(trailers: readonly Field[]): void {
    this.#request?.requestEnd(trailers);
  }

  onBodyFailed(error: unknown): void {
    this.#closing = true;
    this.#request?.requestFailed(error);
  }

  // What the exchange asks for.

  attach(handler: RequestHandler, { framing, httpVersion, keepAlive }: RequestMessage): void {
    this.#request = handler;
    this.#seat?.begin();
    this.#httpVersion = httpVersion;
    this.#closing = !keepAlive;
    this.#reader.beginRequest(framing);
  }

  resumeBody(): void {
    this.#reader.resumeBody();
    this.#advance();
  }

  pauseBody(): void {
    this.#reader.pauseBody();
  }

  dropBody(): void {
    this.#reader.dropBody(!this.#closing);
  }

  sendInterim(answer: Answer): boolean {
    return this.#reply.interim(answer, this.#httpVersion);
  }

  sendHead(answer: Answer): boolean {
    // A response that overtakes the request's body is the last one: the client may never send the rest.
    const closing = this.#closing || !this.#reader.bodyDone || this.#engine.closing;
    this.#closing = this.#reply.head(answer, this.#httpVersion, closing);
    return !this.#outbox.full;
  }

  sendData(piece: Buffer): boolean {
    return this.#reply.data(piece);
  }

  sendEnd(trailers: readonly Field[], whenSent: () => void): void {
    this.#reply.end(trailers, () => {
      whenSent();
      this.#request = undefined;
      this.#reader.endRequest();
      if (this.#closing) this.#linger();
      else this.#awaitNext();
    });
  }

  tunnel(answer: Answer, protocol: string, { socket, first, move }: Upgraded, watch: TunnelWatch): void {
    this.#state = "tunnel";
    this.#reply.switching(answer, protocol);
    this.#outbox.flush();
    this.#socket.removeAllListeners("data").removeAllListeners("end");
    openTunnel({
      client: this.#socket,
      upstream: socket,
      move,
      fromClient: this.#reader.takeRest(),
      fromUpstream: first,
      idleMs: this.#engine.limits.tunnelMs,
      stallMs: this.#engine.limits.tunnelStallMs,
      ...watch,
    });
  }

  /** Resets the connection instead of ending it: a body that ends with its connection would otherwise look whole. */
  cut(): void {
    this.#request = undefined;
    this.#outbox.clear();
    if (this.#peer.secure) this.#socket.destroy();
    else this.#socket.resetAndDestroy();
  }

  // Between requests, and the end.

  #awaitNext(): void {
    if (this.#engine.closing) return this.#linger();
    this.#seat?.rest();
    this.#await(this.#engine.limits.idleMs);
    this.#advance();
  }

  /** Responds to what never became a request. */
  #refuse(error: unknown): void {
    const { answer, body } = refuseEarly(this.#engine, this.#peer, error);
    this.#reply.head(answer, "1.1", true);
    this.#reply.data(body);
    this.#linger();
  }

  /**
   * Ends our direction and keeps reading for a moment: closing while the client still sends would reset the
   * connection, and the response might be lost before the client has read it (RFC 9112 9.6).
   */
  #linger(): void {
    this.#state = "lingering";
    this.#seat?.rest();
    this.#reader.takeRest();
    this.#await(this.#engine.limits.lingerMs);
    this.#outbox.flush();
    this.#socket.end();
    this.#socket.resume();
  }

  finish(): void {
    if (this.#state === "open" && this.#request === undefined) this.#socket.destroy();
  }

  cutRequests(): void {
    this.#request?.cut();
  }

  #await(ms: number): void {
    this.#patienceMs = ms;
    this.#deadline = undefined;
  }

  tick(now: number): void {
    this.#request?.tick(now);
    this.#deadline ??= now + this.#patienceMs;
    if (this.#request !== undefined || now < this.#deadline) return;
    if (this.#state === "open" && this.#reader.headBegun)
      this.#refuse(proxyRefusal("request_timeout", "The request's head did not arrive in time."));
    else this.#socket.destroy();
  }
}
