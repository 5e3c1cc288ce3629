/** A request to an app as one of the streams of an HTTP/2 connection. */
import { type ClientHttp2Stream, type ClientSessionRequestOptions, constants } from "node:http2";
import { messageOf } from "@hibernaut/lib/text";
import type { Field } from "../contract.ts";
import { type AppRequest, type ResponseHandler, StreamReset, Unsendable } from "./app-request.ts";
import { Malformed } from "./grammar.ts";
import type { Origin } from "./heads.ts";
import { http2RequestHead, parseHttp2Response, parseHttp2Trailers, toHeaders } from "./http2-messages.ts";
import { MOST_INTERIM } from "./limits.ts";
import { endsWithHead, type RequestMessage } from "./request.ts";

/** What a stream needs of its connection. */
interface StreamSession {
  /** Whether it carried a request before. */
  readonly reused: boolean;
  /** Why the requests on it failed, if its machine has left. */
  readonly leftBy: Error | undefined;
  request(head: readonly string[], options: ClientSessionRequestOptions): ClientHttp2Stream;
  /** The stream has closed. */
  release(): void;
}

/** Node's code for a field that may occur only once, such as User-Agent, and occurs several times. */
const REPEATED = "ERR_HTTP2_HEADER_SINGLE_VALUE";
const NO_TRAILERS: readonly Field[] = [];
const END = constants.NGHTTP2_FLAG_END_STREAM;

export class AppStream implements AppRequest {
  readonly reused: boolean;
  answering = false;
  unseen = true;
  full = false;
  readonly #session: StreamSession;
  /** Resets the stream. Unlike `close()`, this does not end the request first, which the app could take for whole. */
  readonly #cancel = new AbortController();
  #stream: ClientHttp2Stream | undefined;
  #handler: ResponseHandler | undefined;
  #method = "";
  #interim = 0;
  #ended = false;
  /** Bytes of the response's body that are missing; NaN if it did not say how many there are. */
  #left = Number.NaN;
  #ownTrailers = NO_TRAILERS;
  #trailers = NO_TRAILERS;
  #released = false;

  constructor(session: StreamSession) {
    this.#session = session;
    this.reused = session.reused;
  }

  begin(handler: ResponseHandler, message: RequestMessage, origin: Origin, source: string | undefined): void {
    this.#handler = handler;
    this.#method = message.method;
    this.#ended = endsWithHead(message);
    const waitForTrailers = message.framing.kind === "chunked";
    try {
      const head = http2RequestHead(message, origin, source);
      const options = { endStream: this.#ended, waitForTrailers, signal: this.#cancel.signal };
      this.#listen(this.#session.request(head, options));
      this.unseen = false;
    } catch (error) {
      // Another machine would not take it either.
      const repeats = (error as NodeJS.ErrnoException).code === REPEATED;
      this.unseen = !repeats;
      // The exchange may not be told before it has begun.
      queueMicrotask(() => {
        this.#release();
        this.#fail(repeats ? new Unsendable(messageOf(error)) : (error as Error));
      });
    }
  }

  #listen(stream: ClientHttp2Stream): void {
    this.#stream = stream;
    stream.on("headers", (_headers, _flags, raw: string[]) => this.#read(() => this.#onInterim(raw)));
    stream.on("response", (_headers, flags, raw: string[]) => this.#read(() => this.#onHead(raw, (flags & END) !== 0)));
    stream.on("trailers", (_headers, _flags, raw: string[]) =>
      this.#read(() => {
        this.#trailers = parseHttp2Trailers(raw);
      }),
    );
    stream.on("data", (piece: Buffer) => {
      this.#left -= piece.length;
      this.#handler?.onData(piece);
    });
    stream.on("end", () => {
      // Node also says so when the app resets the stream with CANCEL or NO_ERROR.
      const whole = this.answering && !stream.aborted && stream.rstCode === constants.NGHTTP2_NO_ERROR;
      if (whole && !(this.#left > 0)) this.#finish();
    });
    stream.on("wantTrailers", () => {
      try {
        stream.sendTrailers(toHeaders(this.#ownTrailers));
      } catch {
        // The client repeats a field that Node accepts only once.
        this.#cancel.abort();
      }
    });
    stream.on("drain", () => {
      this.full = false;
      this.#handler?.onRoom();
    });
    // "close" follows, and says more.
    stream.on("error", () => {});
    stream.on("close", () => {
      this.#release();
      this.unseen = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
      this.#fail(this.#session.leftBy ?? new StreamReset(stream.rstCode));
    });
  }

  sendBody(piece: Buffer): boolean {
    if (this.#stream?.writable && !this.#stream.write(piece)) this.full = true;
    return !this.full;
  }

  sendEnd(trailers: readonly Field[]): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#ownTrailers = trailers;
    this.#stream?.end();
  }

  pause(): void {
    this.#stream?.pause();
  }

  resume(): void {
    if (this.#stream?.isPaused()) this.#stream.resume();
  }

  destroy(): void {
    this.#handler = undefined;
    if (this.#stream === undefined) this.#release();
    else this.#cancel.abort();
  }

  /** Ends a stream whose response has ended. */
  end(): void {
    this.#handler = undefined;
    // Its last bytes may be on their way: the stream closes by itself.
    this.resume();
  }

  #onInterim(raw: string[]): void {
    this.#interim += 1;
    if (this.#interim > MOST_INTERIM) throw new Malformed("The app sends too many interim responses.");
    this.#handler?.onInterim(parseHttp2Response(raw, this.#method, false));
  }

  #onHead(raw: string[], ended: boolean): void {
    const response = parseHttp2Response(raw, this.#method, ended);
    if (response.framing.kind === "length") this.#left = response.framing.length;
    this.#handler?.onHead(response);
  }

  #read(work: () => void): void {
    this.answering = true;
    try {
      work();
    } catch (error) {
      this.#fail(error as Error);
      this.#cancel.abort();
    }
  }

  #finish(): void {
    const handler = this.#handler;
    this.#handler = undefined;
    handler?.onEnd(this.#trailers);
  }

  #fail(error: Error): void {
    const handler = this.#handler;
    this.#handler = undefined;
    handler?.onFailed(error);
  }

  #release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#session.release();
  }
}
