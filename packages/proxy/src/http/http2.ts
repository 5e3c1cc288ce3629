/** HTTP/2 to the client: Node's own sessions, in which each stream is an exchange like any other (RFC 9113). */
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Seat } from "@hibernaut/connections";
import { TokenBucket } from "@hibernaut/lib/token-bucket";
import type { Peer } from "./admission.ts";
import type { RequestHandler } from "./client-side.ts";
import type { ClientConnectionHandle, Engine } from "./engine.ts";
import { parseHttp2Request } from "./http2-request.ts";
import { Http2Side } from "./http2-side.ts";
import { refuseEarly } from "./refuse-early.ts";

/** `:method`, `:scheme`, `:authority`, `:path` and, for a WebSocket, `:protocol`. */
const PSEUDO_FIELDS = 5;

/** Takes over a connection on which the client chose HTTP/2. */
export function serveHttp2(engine: Engine, socket: TLSSocket, peer: Peer, seat: Seat): void {
  const { limits } = engine;
  // A session reports what happens to its socket; this is for the moment after it has ended.
  socket.on("error", () => {});
  const session = performServerHandshake(socket, {
    maxHeaderListPairs: limits.headFields + PSEUDO_FIELDS,
    settings: {
      ...{ maxConcurrentStreams: limits.streams, maxHeaderListSize: limits.headBytes, enablePush: false },
      // For WebSockets (RFC 8441).
      enableConnectProtocol: true,
    },
  });
  new Http2Connection(engine, session, peer, seat);
}

class Http2Connection implements ClientConnectionHandle {
  readonly #engine: Engine;
  readonly #session: ServerHttp2Session;
  readonly #peer: Peer;
  readonly #seat: Seat;
  readonly #requests = new Set<RequestHandler>();
  #idleSince = performance.now();
  /** How many requests the client may still cancel. */
  readonly #cancels: TokenBucket;
  /** Whether it has cancelled too many, and the connection is about to be closed. */
  #sentAway = false;

  constructor(engine: Engine, session: ServerHttp2Session, peer: Peer, seat: Seat) {
    this.#engine = engine;
    this.#session = session;
    this.#peer = peer;
    this.#seat = seat;
    this.#cancels = new TokenBucket(engine.limits.cancels);
    engine.connections.add(this);
    session.on("error", () => session.destroy());
    session.on("close", () => engine.connections.delete(this));
    session.on("stream", (stream, _headers, flags, raw: string[]) => {
      this.#serve(stream, raw, (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0);
    });
  }

  #serve(stream: ServerHttp2Stream, raw: string[], ended: boolean): void {
    if (this.#sentAway) return void stream.on("error", () => {}).destroy();
    const side = new Http2Side(stream, ended, this.#engine.limits);
    try {
      const message = parseHttp2Request(raw, ended, this.#engine.limits);
      const request = this.#engine.serve(side, message, this.#peer);
      this.#requests.add(request);
      this.#seat.begin();
      stream.once("close", () => {
        this.#requests.delete(request);
        if (this.#requests.size === 0) this.#seat.rest();
        if (!stream.headersSent && !this.#peer.trusted) this.#countCancelled();
        this.#idleSince = performance.now();
      });
    } catch (error) {
      this.#refuse(side, error);
    }
  }

  /** Ends the connection of a client that cancels too many requests. nghttp2 has a limit, but reads on for a while. */
  #countCancelled(): void {
    this.#cancels.take(1);
    if (this.#cancels.left >= 0 || this.#sentAway) return;
    this.#sentAway = true;
    this.#session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    // Once that is written. What else has arrived until then is not looked at.
    setImmediate(() => this.#session.destroy());
  }

  /** Responds to what never became a request. */
  #refuse(side: Http2Side, error: unknown): void {
    const { answer, body } = refuseEarly(this.#engine, this.#peer, error);
    side.sendHead(answer);
    side.sendData(body);
    side.sendEnd([], () => {});
  }

  finish(): void {
    this.#session.close();
  }

  tick(now: number): void {
    for (const request of this.#requests) request.tick(now);
    if (this.#requests.size === 0 && now - this.#idleSince > this.#engine.limits.idleMs) this.#session.close();
  }

  cutRequests(): void {
    for (const request of this.#requests) request.cut();
  }
}
