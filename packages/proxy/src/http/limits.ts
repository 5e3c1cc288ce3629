import { FIND_MACHINE_MS, TUNNEL_STALL_MS } from "@hibernaut/domain/patience";

/** The most interim responses to one request. An app that sends more will never finish. */
export const MOST_INTERIM = 100;

/** All limits of the HTTP engine, as they are by default. Times are in milliseconds, sizes in bytes. */
export const DEFAULT_LIMITS = {
  /** The head of a request or response with all its lines, or a trailer section. Over it: 431, 414 or 502. */
  headBytes: 32 * 1024,
  /** Fields in a head or trailer section. */
  headFields: 100,
  /** The body of a request. Unlimited by default: bodies are streamed, and the app knows what it accepts. Over it: 413. */
  bodyBytes: Number.POSITIVE_INFINITY,
  /** From the first byte of a connection or request to the end of its head. Ends clients that send very slowly. */
  headMs: 10_000,
  /** A kept connection without a request. Longer than the 60 s after which most load balancers close theirs. */
  idleMs: 75_000,
  /** A TLS handshake. */
  handshakeMs: 10_000,
  /** For the next {@link requestBodyLeast} bytes of the body of a request, or the rest of it. */
  requestBodyMs: 60_000,
  /**
   * Less than any line sends in that time, and more than someone who means to hold on to a machine wants to send. Not for
   * apps that speak HTTP/2, whose calls may be streams of few words.
   */
  requestBodyLeast: 4096,
  /** From a request's head to a connection to a machine, including all waiting. See {@link FIND_MACHINE_MS}. */
  findMachineMs: FIND_MACHINE_MS,
  /** From the end of a request to the head of its final response. Long, as some requests do real work. */
  responseHeadMs: 120_000,
  /** Between two pieces of the body of a response. Event streams can be silent for long; most send a comment every 15-30 s. */
  responseBodyMs: 300_000,
  /** A client that does not read its response. */
  clientStallMs: 60_000,
  /** An upgraded connection on which nothing is sent. */
  tunnelMs: 3_600_000,
  /**
   * A side of an upgraded or TCP connection that takes none of the bytes that wait for it. 0: without limit. See
   * `HIBERNAUT_PROXY_STALL_TIMEOUT`.
   */
  tunnelStallMs: TUNNEL_STALL_MS,
  /** After the last byte of a closing connection: how long, and how many bytes, the client may still send. */
  lingerMs: 2_000,
  lingerBytes: 4 * 1024 * 1024,
  /** How many bytes of a client are read ahead: of a body that is held back, or of pipelined requests. */
  aheadBytes: 64 * 1024,
  /** How many bytes wait for a slow reader before its writer is paused. */
  bufferBytes: 256 * 1024,
  /** One attempt to connect, after which a new socket is used. Waiting for the kernel to repeat a lost packet takes 1 s. */
  connectAttemptMs: 250,
  /** The pauses between attempts grow from the first to the last. */
  connectPauseMs: { first: 2, last: 20 },
  /** How many machines a request is given to, one after the other. */
  tries: 3,
  /** How many connections to one machine there may be, busy and idle. Over it: 503. */
  machineConnections: 4096,
  /** How many idle connections to one machine are kept for the next request. */
  machineIdleConnections: 256,
  /** How long idle connections are kept: less than the 5 s after which many servers close theirs (Node's default). */
  machineIdleMs: 4_000,
  /** How long idle connections to other hosts are kept: less than {@link idleMs}, after which those close theirs. */
  peerIdleMs: 60_000,
  /** From the beginning of a connection to another host's proxy until both have shown their certificates. */
  peerConnectMs: 3_000,
  /** How often one request may be sent on by apps: apps that send it to each other would do so forever. */
  replayHops: 10,
  /** How much of a request's body is kept while it is forwarded, in case the app sends the request on. Over it: 413. */
  replayBodyBytes: 1024 * 1024,
  /** The same for all open requests together; those of one app take up to half. Over it, further bodies are not kept. */
  replayKeptBytes: 64 * 1024 * 1024,
  /** How much of a response is read that sends its request on, to use the connection again. Over it, it is closed. */
  replayDrainBytes: 16 * 1024,
  /** How many requests may be open on one HTTP/2 connection. */
  streams: 128,
  /**
   * How many requests on one HTTP/2 connection a client may cancel before they are answered: at once, and per second from
   * then on. Each may cost a machine's start, and a cancelled one makes room for the next under {@link streams}. The burst is
   * more than a page that is left behind, with all that it was loading.
   */
  cancels: { burst: 256, perSecond: 100 },
  /** How often time limits are looked at, and so how exact they are. */
  sweepMs: 250,
};

export type Limits = typeof DEFAULT_LIMITS;
