/** What an exchange and the app's side of it, HTTP/1.1 or HTTP/2, ask of each other. */
import type { Socket } from "node:net";
import type { Field, Lease } from "../contract.ts";
import type { Origin } from "./heads.ts";
import type { RequestMessage } from "./request.ts";
import type { ResponseMessage } from "./response.ts";
import type { Move } from "./tunnel.ts";

/** The app's side of an exchange: a connection (HTTP/1.1), or one of the streams of a connection (HTTP/2). */
export interface AppRequest {
  /** Whether the connection carried a request before the current one: it may have died in the meantime. */
  readonly reused: boolean;
  /** Whether anything of the response has arrived. */
  readonly answering: boolean;
  /** Whether the app has certainly not seen the request. */
  readonly unseen: boolean;
  /** Whether the app reads more slowly than we write; `onRoom` follows. */
  readonly full: boolean;
  /**
   * Begins a request with its head.
   *
   * @param source the value of `fly-replay-src`, if another app sent the request on
   * @param lease for which machine it is: a connection to another host's proxy carries requests for many
   */
  begin(
    handler: ResponseHandler,
    message: RequestMessage,
    origin: Origin,
    source: string | undefined,
    lease: Lease,
  ): void;
  /** Sends a piece of the request's body. Returns false if no more should follow until `onRoom`. */
  sendBody(piece: Buffer): boolean;
  /** Ends the request, unless its head already said that it ends. */
  sendEnd(trailers: readonly Field[]): void;
  pause(): void;
  resume(): void;
  /** Gives the request up at once, without telling the handler. */
  destroy(): void;
}

/** A connection to an app that does not carry HTTP any more. */
export interface Upgraded {
  readonly socket: Socket;
  /** What the app has sent since. */
  readonly first: Buffer;
  /** How to read what follows. */
  readonly move: Move;
}

/** The sender of a request. Nothing is called after `onEnd`, `onUpgrade` or `onFailed`. */
export interface ResponseHandler {
  onInterim(response: ResponseMessage): void;
  onHead(response: ResponseMessage): void;
  onData(piece: Buffer): void;
  onEnd(trailers: readonly Field[]): void;
  /** The app responded with 101: its socket now belongs to the handler. */
  onUpgrade(response: ResponseMessage, upgraded: Upgraded): void;
  /** The connection is gone, or what arrived is not a response (`error` is then {@link Malformed}). */
  onFailed(error: Error): void;
  /** More of the request may be sent. */
  onRoom(): void;
}

/**
 * The machine went to sleep or ended while a connection to it was being made, or its guest ended with a request: the
 * request needs a new lease.
 */
export class MachineLeft extends Error {
  override name = "MachineLeft";
}

/** The app ended an HTTP/2 stream with an error. */
export class StreamReset extends Error {
  override name = "StreamReset";
  /** An error code of RFC 9113 7. */
  readonly code: number;

  constructor(code: number) {
    super(`The app reset the request with the HTTP/2 error code ${code}.`);
    this.code = code;
  }
}

/** The request cannot be put into HTTP/2, so no app got it. */
export class Unsendable extends Error {
  override name = "Unsendable";
}
