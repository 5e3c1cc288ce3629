/**
 * What the proxy's HTTP engine asks of whoever knows the machines, and what it tells them.
 * The engine knows HTTP and sockets; which machine answers, and waking it, is the LeaseProvider's business.
 */

/** Chooses where a request goes, and wakes what sleeps. */
export interface LeaseProvider {
  /**
   * Returns a lease when a machine may take the request now, which is what most requests meet, and else a promise of
   * one. Throws, or rejects with, a {@link ProxyRefusal} when none may, and rejects with the signal's reason after it
   * aborted. Anything else that is thrown becomes a 500 `internal`.
   *
   * Asked again for the same request, with the machines that failed in `request.tried`, when a machine could not
   * be reached or died before its first answering byte and the request is safe to repeat.
   *
   * @param signal to be asked for by whoever waits: aborts when the client went away or the proxy ran out of patience
   */
  acquire(request: RequestHead, signal: () => AbortSignal): Lease | Promise<Lease>;
}

/** A field line of a message: `name` as it was spelt, `key` the same in lower case, `value` without outer blanks. */
export interface Field {
  readonly name: string;
  readonly key: string;
  readonly value: string;
}

/** What is known of a request before its body. */
export interface RequestHead {
  /** As sent: methods are case-sensitive. */
  readonly method: string;
  /** Origin-form, `/path?query`, or `*` for OPTIONS. */
  readonly target: string;
  /** Name of the host that the client wants, in lower case, without port. IPv6 in brackets. */
  readonly host: string;
  readonly httpVersion: "1.0" | "1.1" | "2.0";
  /** Header fields in their order. Those that only trusted proxies may send are gone if another peer sent them. */
  readonly fields: readonly Field[];
  /** The client's IP address; behind trusted proxies the one they report. */
  readonly clientAddress: string;
  /** Whether the client came over TLS. */
  readonly secure: boolean;
  readonly requestId: string;
  /** Identity of the client's connection: the same object for all requests on it. */
  readonly connection: object;
  /** Machines that this request was given to in vain, in order. */
  readonly tried: readonly string[];
}

/** A machine's place for one request. */
export interface Lease {
  readonly address: string;
  readonly port: number;
  readonly machineId: string;
  readonly appName: string;
  /** How the machine came to answer; goes to the client as `Hibernaut-Wake`. */
  readonly wake: Wake;
  /**
   * Until when, on the clock of `performance.now()`, connections are tried again: a machine that was just woken
   * may need a moment until its port answers. One attempt is made even if this has passed.
   */
  readonly connectDeadline: number;
  /** The exchange became a tunnel, which may stay open for ever: it is no request that ends by itself any more. */
  upgraded?(): void;
  /** The client sent something through the tunnel, and the machine may be asleep. Cheap; called for every piece. */
  wanted?(): void;
  /**
   * Called exactly once: when the last byte of the response was sent, the upgraded connection has closed, or it
   * failed. Must not throw.
   */
  release(outcome: LeaseOutcome): void;
}

export interface Wake {
  readonly kind: "running" | "resume" | "cold";
  /** How long the request waited for the machine, in milliseconds; 0 when it was running. */
  readonly durationMs: number;
}

/** `status` is what the client was sent, if anything; `error` a stable code when something went wrong. */
export interface LeaseOutcome {
  readonly status?: number | undefined;
  readonly error?: string | undefined;
}

/** An answer that the proxy gives itself: JSON with `code`, `message` and the request's id. */
export class ProxyRefusal extends Error {
  override name = "ProxyRefusal";
  readonly status: number;
  readonly code: string;
  /** Seconds after which the client may try again; becomes `Retry-After`. */
  readonly retryAfterS: number | undefined;

  constructor(status: number, code: string, message: string, options: ErrorOptions & { retryAfterS?: number } = {}) {
    super(message, options);
    this.status = status;
    this.code = code;
    this.retryAfterS = options.retryAfterS;
  }
}

/** One line of the access log. */
export interface AccessEntry {
  /** When the request's head was complete, in milliseconds since 1970. */
  readonly time: number;
  readonly requestId: string;
  readonly method: string;
  readonly host: string;
  /** With its query. */
  readonly target: string;
  readonly httpVersion: string;
  readonly clientAddress: string;
  /** What the client was sent; undefined when it left, or was cut off, before there was an answer. */
  readonly status: number | undefined;
  /** Body bytes, without framing; all bytes of an upgraded connection. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly durationMs: number;
  readonly wake: Wake | undefined;
  readonly machineId: string | undefined;
  readonly appName: string | undefined;
  /** Stable code of what went wrong; undefined when the response was sent whole. */
  readonly error: string | undefined;
}
