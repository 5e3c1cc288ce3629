import { FIND_MACHINE_MS } from "../../domain/patience.ts";

/** Every bound of the engine, with its default. Times in milliseconds, sizes in bytes. */
export interface Limits {
  /** A head, request or response, with all its lines; a trailer section likewise. Over it: 431, or 414, or 502. */
  headBytes: number;
  /** Fields in a head or trailer section. */
  headFields: number;
  /** A request's body. Unlimited by default: bodies are streamed, and the app knows what it wants. Over it: 413. */
  bodyBytes: number;
  /** From a connection's or request's first byte to the end of its head: ends clients that trickle. */
  headMs: number;
  /** A kept connection without a request. Above the 60 s after which most load balancers let go. */
  idleMs: number;
  /** A TLS handshake. */
  handshakeMs: number;
  /** Between two pieces of a request's body. */
  requestBodyMs: number;
  /** From a request's head to a connection to a machine, including all waiting. See {@link FIND_MACHINE_MS}. */
  findMachineMs: number;
  /** From the end of the request to the head of the final response. Long: some requests do real work. */
  responseHeadMs: number;
  /** Between two pieces of a response's body. Event streams are silent for long; most send a comment every 15-30 s. */
  responseBodyMs: number;
  /** A client that does not read what is there for it. */
  clientStallMs: number;
  /** An upgraded connection on which nothing moves. */
  tunnelMs: number;
  /** After the last byte of a closing connection: time, and bytes, for the client to read it while it still sends. */
  lingerMs: number;
  lingerBytes: number;
  /** Bytes read ahead of a client: of a body that is not wanted yet, or of pipelined requests. */
  aheadBytes: number;
  /** Bytes that wait for a slow reader before its writer is paused. */
  bufferBytes: number;
  /** One attempt to connect; then a new socket. A packet lost to a waking machine would cost the kernel's 1 s. */
  connectAttemptMs: number;
  /** Pauses between attempts grow from the first to the last. */
  connectPauseMs: { first: number; last: number };
  /** Machines, one after the other, that a request is given to. */
  tries: number;
  /** Connections to one machine, busy and idle. Over it: 503. */
  machineConnections: number;
  /** Connections to one machine that are kept for the next request. */
  machineIdleConnections: number;
  /** How long they are kept: less than the 5 s after which many servers close theirs (Node's default). */
  machineIdleMs: number;
  /** Requests at once on one HTTP/2 connection. */
  streams: number;
  /** How often all these times are looked at: they are exact to this. */
  sweepMs: number;
}

export const DEFAULT_LIMITS: Readonly<Limits> = {
  headBytes: 32 * 1024,
  headFields: 100,
  bodyBytes: Number.POSITIVE_INFINITY,
  headMs: 10_000,
  idleMs: 75_000,
  handshakeMs: 10_000,
  requestBodyMs: 60_000,
  findMachineMs: FIND_MACHINE_MS,
  responseHeadMs: 120_000,
  responseBodyMs: 300_000,
  clientStallMs: 60_000,
  tunnelMs: 3_600_000,
  lingerMs: 2_000,
  lingerBytes: 4 * 1024 * 1024,
  aheadBytes: 64 * 1024,
  bufferBytes: 256 * 1024,
  connectAttemptMs: 250,
  connectPauseMs: { first: 2, last: 20 },
  tries: 3,
  machineConnections: 4096,
  machineIdleConnections: 256,
  machineIdleMs: 4_000,
  streams: 128,
  sweepMs: 250,
};
