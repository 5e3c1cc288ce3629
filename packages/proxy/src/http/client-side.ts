/** What an exchange and the client's side of it, HTTP/1 or HTTP/2, ask of each other. */
import type { Field } from "../contract.ts";
import type { Upgraded } from "./app-request.ts";
import type { Answer } from "./heads.ts";
import type { RequestMessage } from "./request.ts";
import type { TunnelWatch } from "./tunnel.ts";

/** The client's side of an exchange. */
export interface ClientSide {
  /** Connects the request with its handler. Called once per request, before anything else. */
  attach(handler: RequestHandler, message: RequestMessage): void;
  /** Lets the request's body flow, or holds it back. It is held back at first. */
  resumeBody(): void;
  pauseBody(): void;
  /** Discards the rest of the request's body. */
  dropBody(): void;
  /** These three return false if the client reads more slowly than we write; `onClientRoom` then follows. */
  sendInterim(answer: Answer): boolean;
  sendHead(answer: Answer): boolean;
  sendData(piece: Buffer): boolean;
  /** Ends the response. Calls back when its last byte was sent. */
  sendEnd(trailers: readonly Field[], whenSent: () => void): void;
  /**
   * Cuts the response off in a way that the client notices.
   *
   * @param reset the HTTP/2 error code with which the app did so
   */
  cut(reset?: number): void;
  /** Responds with 101 and connects the two sockets. */
  tunnel(answer: Answer, protocol: string, upgraded: Upgraded, watch: TunnelWatch): void;
}

/** What the client's side tells about a request. */
export interface RequestHandler {
  /** A piece of the body. Throws if the body becomes too large. */
  requestData(piece: Buffer): void;
  requestEnd(trailers: readonly Field[]): void;
  /** The body is not what its head promised. */
  requestFailed(error: unknown): void;
  /** The client has read what was sent, and more may be sent. */
  onClientRoom(): void;
  clientGone(): void;
  /** Looks at the time limits. `now` is on the clock of `performance.now()`. */
  tick(now: number): void;
  /** Ends the request at once. */
  cut(): void;
}
