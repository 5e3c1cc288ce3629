/** HTTP/2 to the client: Node's own sessions, each stream an exchange like any other (RFC 9113). */
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import { admit, type Peer, peerOf } from "./admission.ts";
import type { ClientConnectionHandle, Engine } from "./engine.ts";
import { Exchange } from "./exchange.ts";
import { parseHttp2Request } from "./http2-request.ts";
import { Http2Side } from "./http2-side.ts";
import { logRefused } from "./log-refused.ts";
import { toProxyRefusal, refusalAnswer } from "./refusals.ts";

/** `:method`, `:scheme`, `:authority` and `:path`. */
const PSEUDO_FIELDS = 4;

/** Takes over a connection on which the client chose HTTP/2. */
export function serveHttp2(engine: Engine, socket: TLSSocket): void {
  const { limits, trust } = engine;
  // A session reports what happens to its socket; this is for the moment after it has ended.
  socket.on("error", () => {});
  const session = performServerHandshake(socket, {
    maxHeaderListPairs: limits.headFields + PSEUDO_FIELDS,
    settings: { maxConcurrentStreams: limits.streams, maxHeaderListSize: limits.headBytes, enablePush: false },
  });
  new Http2Connection(engine, session, peerOf(socket.remoteAddress, true, session, trust));
}

class Http2Connection implements ClientConnectionHandle {
  readonly #engine: Engine;
  readonly #session: ServerHttp2Session;
  readonly #peer: Peer;
  readonly #exchanges = new Set<Exchange>();
  #idleSince = performance.now();

  constructor(engine: Engine, session: ServerHttp2Session, peer: Peer) {
    this.#engine = engine;
    this.#session = session;
    this.#peer = peer;
    engine.connections.add(this);
    session.on("error", () => session.destroy());
    session.on("close", () => engine.connections.delete(this));
    session.on("stream", (stream, _headers, flags, raw: string[]) => {
      this.#serve(stream, raw, (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0);
    });
  }

  #serve(stream: ServerHttp2Stream, raw: string[], ended: boolean): void {
    const side = new Http2Side(stream, ended);
    try {
      const message = parseHttp2Request(raw, ended, this.#engine.limits);
      const { fields, origin } = admit(message.fields, this.#peer, this.#engine.trust);
      message.fields = fields;
      const exchange = new Exchange(this.#engine, side, message, origin, this.#peer);
      side.serve(exchange);
      this.#exchanges.add(exchange);
      stream.once("close", () => {
        this.#exchanges.delete(exchange);
        this.#idleSince = performance.now();
      });
      exchange.start();
    } catch (error) {
      const refused = toProxyRefusal(error);
      const { origin } = admit([], this.#peer, this.#engine.trust);
      const { answer, body } = refusalAnswer(refused, origin.requestId);
      side.sendHead(answer);
      side.sendData(body);
      side.sendEnd([], () => {});
      logRefused(this.#engine, origin, refused, body.length);
    }
  }

  finish(): void {
    this.#session.close();
  }

  tick(now: number): void {
    for (const exchange of this.#exchanges) exchange.tick(now);
    if (this.#exchanges.size === 0 && now - this.#idleSince > this.#engine.limits.idleMs) this.#session.close();
  }

  cutRequests(): void {
    for (const exchange of this.#exchanges) exchange.cut();
  }
}
