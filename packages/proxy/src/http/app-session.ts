/** An HTTP/2 connection to an app, without TLS, by prior knowledge (RFC 9113 3.3). Its streams are requests. */
import { type ClientHttp2Session, type ClientHttp2Stream, type ClientSessionRequestOptions, connect } from "node:http2";
import type { Socket } from "node:net";
import type { ConnectionKey } from "../contract.ts";
import { AppStream } from "./app-stream.ts";
import type { Limits } from "./limits.ts";

/** The port took the connection, and does not speak HTTP/2. */
export class NotHttp2 extends Error {
  override name = "NotHttp2";
}

export class AppSession {
  readonly address: string;
  readonly port: number;
  /** No further requests are sent on it: its machine leaves, or the app has said so. */
  retired = false;
  /** Why the requests on it failed, if its machine has left. */
  leftBy: Error | undefined;
  /** Whether it carried a request before. */
  reused = false;
  /** When it became idle, on the clock of the sweep; undefined until the next sweep. */
  idleSince: number | undefined;
  readonly #session: ClientHttp2Session;
  readonly #limits: Limits;
  #streams = 0;

  private constructor(
    session: ClientHttp2Session,
    { address, port }: ConnectionKey,
    limits: Limits,
    onClose: () => void,
  ) {
    this.address = address;
    this.port = port;
    this.#session = session;
    this.#limits = limits;
    session.on("goaway", () => {
      this.retired = true;
    });
    session.on("close", onClose);
  }

  /**
   * Begins HTTP/2 on a socket. Resolves once the app has sent its settings, which is what tells it from one that does not
   * speak HTTP/2. Rejects with {@link NotHttp2}, or with the signal's reason.
   */
  static async open(
    socket: Socket,
    lease: ConnectionKey,
    limits: Limits,
    signal: AbortSignal,
    onClose: (session: AppSession) => void,
  ): Promise<AppSession> {
    const session = connect(`http://${lease.address}:${lease.port}`, {
      createConnection: () => socket,
      maxHeaderListPairs: limits.headFields,
      settings: { enablePush: false, maxHeaderListSize: limits.headBytes },
    });
    // The socket may be half open, and Node's session does not mind: but an app that has ended answers nothing any more.
    socket.once("end", () => session.destroy());
    await new Promise<void>((resolve, reject) => {
      const giveUp = (error: Error) => {
        over();
        session.destroy();
        reject(error);
      };
      const failed = (error: Error) => giveUp(new NotHttp2(error.message));
      const closed = () => giveUp(new NotHttp2("It closed the connection."));
      const aborted = () => giveUp(signal.reason as Error);
      const timer = setTimeout(
        () => giveUp(new NotHttp2(`It said nothing within ${limits.handshakeMs / 1000} s.`)),
        limits.handshakeMs,
      );
      const over = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", aborted);
        session
          .off("close", closed)
          .off("error", failed)
          .on("error", () => {});
      };
      signal.addEventListener("abort", aborted, { once: true });
      session.once("error", failed).once("close", closed);
      session.once("remoteSettings", () => {
        over();
        resolve();
      });
      if (signal.aborted) aborted();
    });
    const made: AppSession = new AppSession(session, lease, limits, () => onClose(made));
    return made;
  }

  get idle(): boolean {
    return this.#streams === 0;
  }

  /** Whether another request may be sent on it now. */
  get hasRoom(): boolean {
    const { closed, destroyed, remoteSettings } = this.#session;
    if (this.retired || closed || destroyed) return false;
    return this.#streams < Math.min(this.#limits.streams, remoteSettings.maxConcurrentStreams ?? this.#limits.streams);
  }

  /** Takes a place for a request, which it gives back by itself. */
  take(): AppStream {
    this.#streams += 1;
    this.idleSince = undefined;
    const stream = new AppStream(this);
    this.reused = true;
    return stream;
  }

  /** For its streams. */
  request(head: readonly string[], options: ClientSessionRequestOptions): ClientHttp2Stream {
    return this.#session.request(head, options);
  }

  /** For its streams: one has closed. */
  release(): void {
    this.#streams -= 1;
    if (this.retired && this.idle) this.#session.destroy();
  }

  /** Closes it now if it is idle, otherwise when its last request has ended. */
  retire(): void {
    this.retired = true;
    if (this.idle) this.#session.destroy();
  }

  /** The app is gone: its requests fail at once. */
  abandon(reason: Error): void {
    this.retired = true;
    this.leftBy = reason;
    this.#session.destroy();
  }
}
