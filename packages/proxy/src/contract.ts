/**
 * The contract between the proxy's HTTP engine and the part of the proxy that knows the machines. The engine knows HTTP
 * and sockets. Routing a hostname, choosing a machine and waking it is the lease provider's business.
 */
import { randomUUID } from "node:crypto";
import type { ConnectionOptions } from "node:tls";
import type { BootKind } from "@hibernaut/domain/machine";
import type { ProxyProtocolVersion } from "@hibernaut/domain/tcp-handlers";
import type { RequestTrace } from "@hibernaut/telemetry";

/**
 * Finds a machine for a request. `request-path.ts` calls the first three methods in the order in which they are listed,
 * and calls the last two of them again, with the failed machines in `request.tried`, if a machine could not be reached or died
 * before the first byte of its response and the request is safe to repeat.
 *
 * A method that refuses a request throws, or rejects with, a {@link ProxyRefusal}. Any other error becomes a 500
 * `internal`.
 */
export interface LeaseProvider {
  /** Returns what answers a challenge of a certificate authority, if the target is that of one that is open now. */
  challengeAnswer?(hostname: string, target: string): string | undefined;
  /** The certificates of challenges over TLS that are open now, with their keys in PEM, by hostname. */
  readonly challengeCertificates?: ReadonlyMap<string, string>;
  /** Returns the app that answers for the hostname. Refuses with `unknown_host` if there is none. */
  route(hostname: string): string;
  /**
   * Returns a lease if a machine can take the request now, which is the usual case. Returns undefined if the request has
   * to wait; if a machine needs to wake for it, the wake has been requested. Refuses if waiting would be in vain.
   */
  leaseNow(app: string, request: RequestHead): Lease | undefined;
  /**
   * Waits in the app's queue for a lease. Refuses if the queue is full or the wait takes too long, and rejects with the
   * signal's reason once it aborts.
   *
   * @param signal aborts when the client leaves or the proxy runs out of patience
   */
  waitForLease(app: string, request: RequestHead, signal: AbortSignal): Promise<Lease>;
  /**
   * Returns where a request goes that an app sends on; {@link RequestHead.to} then has it. Refuses if there is no such
   * app or machine, or if that app does not allow it.
   */
  replayTo(order: ReplayOrder, fromApp: string): Destination;
  /**
   * Resolves once it makes sense to look for a machine again: the host of the lease says that it no longer has the machine.
   * Rejects with the signal's reason.
   */
  afterMove?(lease: Lease, signal: AbortSignal): Promise<void>;
  /** Returns the app of the machine with this address. Undefined for any other client. */
  appOfAddress?(address: string): string | undefined;
  /**
   * Returns the machine of this host with this address, if it has a service or is a worker: it may sleep while it has
   * connections open.
   */
  machineAt?(address: string): string | undefined;
  /** A machine of this host has a connection to an app of its network. Returns what to tell of it, if the machine is a worker. */
  connectedFrom?(machineId: string): ClientEnd | undefined;
}

/** What an app says about a request that it sends on. */
export interface ReplayOrder {
  /** Undefined for the app itself. */
  readonly app: string | undefined;
  /** The id or the name of a machine. Undefined if any machine of the app will do. */
  readonly machine: string | undefined;
  /** A text for the app that gets the request. */
  readonly state: string | undefined;
}

/** Where a request goes that an app, or a proxy of another host, sent on. */
export interface Destination {
  /** The app that sent it on. The same app, if a proxy did. */
  readonly from: string;
  readonly app: string;
  /** Undefined if any machine of the app will do. */
  readonly machineId: string | undefined;
  /** The port of another service of the machine than the one that takes HTTP requests. */
  readonly port?: number | undefined;
  /** Whether the proxy of another host, which sent it here, has another machine for it, should this one not be ready. */
  readonly hasOthers?: boolean | undefined;
}

/** A field line of a message: `name` as it was spelled, `key` in lower case, `value` without surrounding whitespace. */
export interface Field {
  readonly name: string;
  readonly key: string;
  readonly value: string;
}

/** What replaces an app's own headers of one name. Without fields, they are only removed. */
export interface OwnHeader {
  readonly key: string;
  readonly fields: readonly Field[];
}

/** What is known of a request before its body. */
export interface RequestHead {
  /** As sent: methods are case-sensitive. */
  readonly method: string;
  /** Origin form, `/path?query`, or `*` for OPTIONS. */
  readonly target: string;
  /** The requested hostname in lower case, without a port. IPv6 addresses are in brackets. */
  readonly host: string;
  readonly httpVersion: "1.0" | "1.1" | "2.0";
  /** Header fields in their original order, without those that only trusted proxies may send if the peer is not one. */
  readonly fields: readonly Field[];
  /** The client's IP address; behind trusted proxies, the address they report. */
  readonly clientAddress: string;
  /** Whether the client came over TLS. */
  readonly secure: boolean;
  readonly requestId: string;
  /** Identity of the client's connection: the same object for all requests on it. */
  readonly connection: object;
  /** Machines that were given this request in vain, in order. */
  readonly tried: readonly string[];
  /**
   * When the request came, if a machine was given it in vain: a start since then was for it. Undefined otherwise. On the
   * clock of `performance.now()`.
   */
  readonly since?: number | undefined;
  /** Where an app sent the request on to, which counts instead of its hostname and its fields. */
  readonly to?: Destination | undefined;
  /** The request's spans, if it is traced. */
  readonly trace?: Pick<RequestTrace, "wakeParent"> | undefined;
  /** The port of the proxy that a TCP connection came to. Absent for HTTP. */
  readonly tcpPort?: number;
}

/** A machine's place for one request. */
export interface Lease {
  readonly address: string;
  readonly port: number;
  readonly machineId: string;
  readonly appName: string;
  /** How the machine came to answer. The client sees it as `Hibernaut-Wake`. */
  readonly wake: LeaseStart;
  /**
   * When to stop retrying a connection, on the clock of `performance.now()`: a machine that just woke may need a moment
   * until its port answers. One attempt is made even if this has passed.
   */
  readonly connectDeadline: number;
  /** For TCP: the header of the PROXY protocol that the app gets first. Undefined if none. */
  readonly proxyProtocol?: ProxyProtocolVersion | undefined;
  /** Whether the app speaks HTTP/2 without TLS on the port, and the request can take it. */
  readonly http2?: boolean;
  /** Headers that replace those of the app in its response. Undefined, the usual case, if there are none. */
  readonly ownHeaders?: readonly OwnHeader[] | undefined;
  /** The machine is on another host, whose proxy takes the request. Undefined, the usual case, if it is on this one. */
  readonly peer?: LeasePeer | undefined;
  /** The exchange became a tunnel, which may stay open without limit and is not a request that ends by itself. */
  upgraded?(): void;
  /** Bytes of bodies, or of a tunnel, were forwarded to the machine (`bytesIn`) or the client. Cheap; called for every piece. */
  moved?(bytesIn: number, bytesOut: number): void;
  /** The client sent something through the tunnel, and the machine may be asleep. Cheap; called for every piece. */
  wanted?(): void;
  /**
   * Nothing passes through the tunnel, or something does again. A service may say that a quiet tunnel does not keep its
   * machine awake.
   */
  quiet?(quiet: boolean): void;
  /**
   * Called exactly once: when the last byte of the response was sent, when the upgraded connection closed, or when the
   * request failed. Must not throw.
   */
  release(outcome: LeaseOutcome): void;
}

/** What decides which connections a request can use. */
export type ConnectionKey = Pick<Lease, "machineId" | "appName" | "address" | "port" | "http2" | "peer">;

/** The way to a machine of another host. */
export interface LeasePeer {
  readonly host: string;
  /** The port of another service of the machine than the one that takes HTTP requests. */
  readonly port: number | undefined;
  /** Whether another machine could take the request now: it need not wait for this one. */
  readonly hasOthers: boolean;
  /** How to connect to that host's proxy, for HTTP or for a TCP connection. Throws if the host is away. */
  target(kind: "http" | "tcp"): PeerTarget;
  /** The other host says how its machine came to answer. */
  answered(wake: LeaseStart): void;
}

/** Where another host's proxy takes requests, over TLS with certificates of the cluster on both sides. */
export interface PeerTarget {
  readonly host: string;
  readonly port: number;
  readonly tls: ConnectionOptions;
}

/** How a machine came to answer a request. */
export interface LeaseStart {
  readonly kind: "running" | BootKind;
  /** How long the request waited for the machine, in milliseconds; 0 if the machine was running. */
  readonly durationMs: number;
}

/** The machine was running, as it is for nearly every request. */
export const RUNNING: LeaseStart = { kind: "running", durationMs: 0 };

/** The worker's end of a connection that is carried. */
export interface ClientEnd {
  /** Nothing passes through the connection, or something does again. */
  quiet(quiet: boolean): void;
  /** Something comes back for the worker, or the other side has ended. Cheap; called for every piece. */
  answered(): void;
  /**
   * Calls `cut`, which breaks the connection off, once the worker is awake to notice, and wakes it for that: a packet to a guest
   * that sleeps is lost, and the worker would wait forever at the end of a connection that only it knows.
   */
  breakOff(cut: () => void): void;
  /** Called exactly once, when the connection is over. */
  release(): void;
}

/** How a lease ended. */
export interface LeaseOutcome {
  /** The status that the client was sent, if any. */
  readonly status?: number | undefined;
  /** A stable code, if something went wrong. */
  readonly error?: string | undefined;
}

/** A response from the proxy itself: JSON with `error`, `message` and the request's id. */
export class ProxyRefusal extends Error {
  override name = "ProxyRefusal";
  readonly status: number;
  readonly code: string;
  /** Seconds after which the client may try again; sent as `Retry-After`. */
  readonly retryAfterS: number | undefined;
  /** Where the client should go instead; sent as `Location`. */
  readonly location: string | undefined;
  /** Whether to send the wake page in place of JSON. */
  readonly page: boolean;

  constructor(
    status: number,
    code: string,
    message: string,
    options: ErrorOptions & { retryAfterS?: number; location?: string; page?: boolean } = {},
  ) {
    super(message, options);
    this.status = status;
    this.code = code;
    this.retryAfterS = options.retryAfterS;
    this.location = options.location;
    this.page = options.page ?? false;
  }
}

/** One line of the access log. */
export interface AccessEntry {
  /** When the request's head was complete, in milliseconds since 1970. */
  readonly time: number;
  readonly requestId: string;
  readonly method: string;
  readonly host: string;
  /** Includes the query. */
  readonly target: string;
  readonly httpVersion: string;
  readonly clientAddress: string;
  /** The status that the client was sent; undefined if the client left, or was cut off, before there was one. */
  readonly status: number | undefined;
  /** Body bytes without framing; all bytes of an upgraded connection. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly durationMs: number;
  readonly wake: LeaseStart | undefined;
  readonly machineId: string | undefined;
  readonly appName: string | undefined;
  /** A stable code for what went wrong; undefined if the whole response was sent. */
  readonly error: string | undefined;
}

/** Returns the line for what never became a request: of such a connection, only the given parts are known. */
export function unservedEntry(known: Partial<AccessEntry> & Pick<AccessEntry, "clientAddress">): AccessEntry {
  return {
    ...{ time: Date.now(), requestId: randomUUID(), method: "", host: "", target: "", httpVersion: "" },
    ...{ status: undefined, bytesIn: 0, bytesOut: 0, durationMs: 0 },
    ...{ wake: undefined, machineId: undefined, appName: undefined, error: undefined },
    ...known,
  };
}
