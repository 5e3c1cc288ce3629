/** The client's side of an exchange that came as an HTTP/2 stream. */
import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Field } from "../contract.ts";
import type { Upgraded } from "./app-request.ts";
import type { ClientSide, RequestHandler } from "./client-side.ts";
import type { Answer } from "./heads.ts";
import { toHeaders } from "./http2-messages.ts";
import type { Limits } from "./limits.ts";
import { ENDINGS } from "./refusals.ts";
import { openTunnel, type TunnelWatch } from "./tunnel.ts";
import { openedWebSocket } from "./websocket.ts";

const NOTHING = Buffer.alloc(0);

export class Http2Side implements ClientSide {
  readonly #stream: ServerHttp2Stream;
  #request: RequestHandler | undefined;
  #flowing = false;
  #requestDone: boolean;
  #requestTrailers: readonly Field[] = [];
  #endsWithTrailers = false;

  readonly #limits: Pick<Limits, "tunnelMs" | "tunnelStallMs">;

  /**
   * @param ended whether the request consists of its head only
   * @param limits of WebSockets
   */
  constructor(stream: ServerHttp2Stream, ended: boolean, limits: Pick<Limits, "tunnelMs" | "tunnelStallMs">) {
    this.#stream = stream;
    this.#requestDone = ended;
    this.#limits = limits;
    // What went wrong does not matter: "close" follows.
    stream.on("error", () => {});
  }

  attach(handler: RequestHandler): void {
    this.#request = handler;
    const stream = this.#stream;
    stream.on("drain", () => handler.onClientRoom());
    stream.on("close", () => handler.clientGone());
    stream.on("trailers", (headers: Record<string, string | string[]>) => {
      this.#requestTrailers = Object.entries(headers).flatMap(([name, values]) =>
        [values].flat().map((value) => ({ name, key: name, value })),
      );
    });
  }

  resumeBody(): void {
    if (this.#flowing) return void this.#stream.resume();
    this.#flowing = true;
    this.#stream.on("data", (piece: Buffer) => {
      try {
        this.#request?.requestData(piece);
      } catch (error) {
        this.#request?.requestFailed(error);
      }
    });
    this.#stream.on("end", () => {
      this.#requestDone = true;
      if (!this.#stream.aborted) this.#request?.requestEnd(this.#requestTrailers);
    });
  }

  pauseBody(): void {
    this.#stream.pause();
  }

  dropBody(): void {
    // The stream is closed after the response, which tells the client to stop.
  }

  sendInterim(answer: Answer): boolean {
    if (!this.#stream.closed) this.#stream.additionalHeaders(headersOf(answer));
    return true;
  }

  sendHead(answer: Answer): boolean {
    const headers = headersOf(answer);
    const { kind } = answer.framing;
    this.#endsWithTrailers = kind === "chunked";
    if ((kind === "none" || kind === "length") && answer.length !== undefined)
      headers["content-length"] = String(answer.length);
    try {
      this.#stream.respond(headers, { endStream: kind === "none", waitForTrailers: this.#endsWithTrailers });
    } catch {
      // The stream is gone, or the app repeats a field that Node accepts only once.
      this.cut();
    }
    return true;
  }

  sendData(piece: Buffer): boolean {
    return this.#stream.writable ? this.#stream.write(piece) : true;
  }

  sendEnd(trailers: readonly Field[], whenSent: () => void): void {
    const stream = this.#stream;
    stream.once("wantTrailers", () => {
      try {
        stream.sendTrailers(toHeaders(trailers));
      } catch {
        // The app repeats a field that Node accepts only once.
        return this.cut();
      }
      this.#stopRequest();
    });
    const done = () => {
      whenSent();
      if (!this.#endsWithTrailers) this.#stopRequest();
    };
    if (stream.writable) stream.end(done);
    else done();
  }

  /** Tells the client to stop sending a body that the response overtook (RFC 9113 8.1). */
  #stopRequest(): void {
    if (!this.#requestDone) this.#stream.close(constants.NGHTTP2_NO_ERROR);
  }

  /**
   * Resets the stream with an error, so that the client cannot mistake the response for whole. `close(code)` would not
   * do, as it sends the end of the response before the reset.
   */
  cut(reset = 0): void {
    const stream = this.#stream;
    if (reset === constants.NGHTTP2_NO_ERROR || !this.#endsWithTrailers)
      return void stream.destroy(new Error("The response was cut off."));
    // While trailers are awaited, `close(code)` does not end the response first: with this listener, none are sent.
    stream.on("wantTrailers", () => {});
    stream.close(reset);
  }

  /** Only for WebSockets: HTTP/2 has no other upgrades (RFC 9113 8.6). */
  tunnel(answer: Answer, _protocol: string, { socket: upstream, first, move }: Upgraded, watch: TunnelWatch): void {
    const stream = this.#stream;
    try {
      stream.respond(headersOf(openedWebSocket(answer)));
    } catch {
      // The client has left while the app answered.
      upstream.destroy();
      return watch.onClose({ bytesIn: 0, bytesOut: 0, error: ENDINGS.clientGone });
    }
    // Nothing may be left of the listeners of a request with a body.
    stream.removeAllListeners("drain").removeAllListeners("trailers");
    const { tunnelMs: idleMs, tunnelStallMs: stallMs } = this.#limits;
    openTunnel({
      ...{ client: stream, upstream, move, fromClient: NOTHING, fromUpstream: first, idleMs, stallMs, ...watch },
      cutClient: () => this.cut(),
    });
  }
}

function headersOf({ status, fields }: Answer): OutgoingHttpHeaders {
  const headers = toHeaders(fields);
  headers[":status"] = status;
  return headers;
}
