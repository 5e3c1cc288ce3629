/** What all connections and exchanges of one proxy share. The implementation is the request path. */
import type { Shares } from "@hibernaut/connections";
import type { AccessEntry, Destination, Field, Lease, ProxyRefusal, ReplayOrder } from "../contract.ts";
import type { Peer } from "./admission.ts";
import type { AppRequest } from "./app-request.ts";
import type { ClientSide, RequestHandler } from "./client-side.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import type { FieldMemory } from "./fields.ts";
import type { KeptBodies } from "./kept-bodies.ts";
import type { Limits } from "./limits.ts";
import type { MachineSearch } from "./machine-search.ts";
import type { RequestMessage } from "./request.ts";
import type { Trust } from "./trust.ts";
import type { WakePage } from "./wake-page.ts";

export interface Engine {
  readonly limits: Readonly<Limits>;
  readonly pool: ConnectionPool;
  /** How many connections to machines there may be, by app. */
  readonly machines: Shares;
  readonly trust: Trust;
  readonly bodies: KeptBodies;
  /** Fields that every app's response over TLS has, unless the app sends its own. */
  readonly secureFields: readonly Field[] | undefined;
  /** What a browser is shown while a machine cold starts. */
  readonly wakePage: WakePage;
  /** Whether the requests come from the proxies of other hosts. */
  readonly fromPeers: boolean;
  /** Client connections, without those that are still in a TLS handshake. */
  readonly connections: Set<ClientConnectionHandle>;
  /** No further requests are accepted on the open connections. */
  closing: boolean;
  onAccess(entry: AccessEntry): void;
  /** A fault of the proxy or its lease provider, which the client was not told about. */
  onFault(error: unknown): void;
  /** Parses the head of an HTTP/1 request. Throws if it is malformed; the connection, whose last head is `before`, then answers. */
  parse(head: string, before: FieldMemory): RequestMessage;
  /** Serves a request whose head was parsed. */
  serve(client: ClientSide, message: RequestMessage, peer: Peer): RequestHandler;
  /**
   * Finds a machine for a request, again if a first one failed, and forwards the request to it.
   *
   * @param fresh whether to use a new connection rather than a kept one
   */
  findMachine(exchange: PathExchange, fresh: boolean): void;
  /** The same, once it is known where the machine of a lease has moved to. */
  findMoved(exchange: PathExchange, lease: Lease): Promise<void>;
  /** Returns where a request goes that an app sends on. Refuses if it may not go there. */
  replayTo(order: ReplayOrder, fromApp: string): Destination;
  /** Ends a request that was served, refused or cut off: releases its lease and logs it. */
  finish(exchange: PathExchange, error: string | undefined): void;
}

/** What the request path needs of an exchange. */
export interface PathExchange {
  readonly search: MachineSearch;
  /** The status that the client was sent, if any. */
  readonly status: number | undefined;
  /** Sends the request. The response returns through the exchange. */
  forward(connection: AppRequest): void;
  /** Responds in the app's place. */
  refuse(refusal: ProxyRefusal): void;
  accessEntry(error: string | undefined): AccessEntry;
}

/** A client's connection, as the server sees it. */
export interface ClientConnectionHandle {
  /**
   * Looks at the time limits of the connection and the requests on it. Called every `sweepMs`.
   *
   * @param now on the clock of `performance.now()`
   */
  tick(now: number): void;
  /** Ends the connection as soon as no request is open on it. */
  finish(): void;
  /** Ends the requests on the connection at once. */
  cutRequests(): void;
}
