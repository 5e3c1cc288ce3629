/**
 * A request's way through the proxy, from the client's connection to the access log. Every request takes these steps in
 * this order. Each step is a call below, and is implemented in the file named here.
 *
 *      1 accept    a client's connection         http/client-connection.ts, http/http2.ts
 *      2 parse     the head of a request         http/request.ts, http/http2-request.ts
 *      3 admit     limits, and whom to believe   http/admission.ts, http/trust.ts
 *      4 route     the hostname to an app        routing.ts
 *      5 choose    a machine, or wake one        machine-choice.ts, balance.ts
 *      6 wait      in the app's queue            queue.ts
 *      7 connect   or use a kept connection      http/connection-pool.ts, http/connect.ts
 *      8 forward   the request to the app        http/exchange.ts, http/upstream.ts, http/app-stream.ts
 *      9 reply     to the client                 http/exchange.ts, http/reply.ts, http/http2-side.ts
 *     10 release   the lease of the machine      machine-lease.ts
 *     11 log       the request                   access-log.ts
 *
 * Most requests get from 2 to 8 without waiting for anything. One that cannot continue is refused, which is steps 9
 * to 11. The proxy answers challenges of certificate authorities itself. A request whose machine fails before it responds
 * returns to step 4 if it is safe to repeat, and so does one that its app sends on (http/replay.ts).
 */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Seat, Shares } from "@hibernaut/connections";
import { background } from "@hibernaut/lib/background";
import type { Tracing } from "@hibernaut/telemetry";
import type { AccessEntry, Destination, Field, Lease, LeaseProvider, ReplayOrder } from "./contract.ts";
import { admit, type Peer, peerOf } from "./http/admission.ts";
import { isChallenge } from "./http/challenge.ts";
import { ClientConnection } from "./http/client-connection.ts";
import type { ClientSide, RequestHandler } from "./http/client-side.ts";
import { ConnectionPool } from "./http/connection-pool.ts";
import type { ClientConnectionHandle, Engine, PathExchange } from "./http/engine.ts";
import { Exchange } from "./http/exchange.ts";
import type { FieldMemory } from "./http/fields.ts";
import { field } from "./http/heads.ts";
import { serveHttp2 } from "./http/http2.ts";
import { KeptBodies } from "./http/kept-bodies.ts";
import type { Limits } from "./http/limits.ts";
import type { MachineSearch } from "./http/machine-search.ts";
import { readPeerRequest } from "./http/peer-heads.ts";
import { toProxyRefusal } from "./http/refusals.ts";
import { parseRequest, type RequestMessage } from "./http/request.ts";
import { bodyTooLarge } from "./http/request-body.ts";
import { plainAddress, Trust } from "./http/trust.ts";
import type { WakePage } from "./http/wake-page.ts";

export interface RequestPathOptions extends Pick<Engine, "machines" | "limits" | "wakePage" | "onAccess" | "onFault"> {
  leases: LeaseProvider;
  /** Addresses and networks of proxies in front of this one. */
  trustedProxies: readonly string[];
  /** How many seconds clients over TLS are told to use nothing else; 0: they are not told. */
  hstsS: number;
  /** Undefined when traces are off. */
  tracing: Tracing | undefined;
  /** Whether the requests come from the proxies of other hosts, each for one machine. By default, from clients. */
  fromPeers?: boolean;
}

export class RequestPath implements Engine {
  readonly limits: Readonly<Limits>;
  readonly pool: ConnectionPool;
  readonly machines: Shares;
  readonly trust: Trust;
  readonly bodies: KeptBodies;
  readonly secureFields: readonly Field[] | undefined;
  readonly wakePage: WakePage;
  readonly fromPeers: boolean;
  readonly connections = new Set<ClientConnectionHandle>();
  readonly onAccess: (entry: AccessEntry) => void;
  readonly onFault: (error: unknown) => void;
  readonly #leases: LeaseProvider;
  readonly #tracing: Tracing | undefined;
  closing = false;
  /**
   * Requests in progress. Only counted: a Set that changes with every request keeps ended ones alive until the next
   * full garbage collection, as each of its outgrown tables points to the next.
   */
  requests = 0;

  constructor(options: RequestPathOptions) {
    const { limits, machines, hstsS } = options;
    this.fromPeers = options.fromPeers ?? false;
    this.#leases = options.leases;
    this.#tracing = options.tracing;
    this.limits = limits;
    this.machines = machines;
    this.pool = new ConnectionPool(limits, machines);
    this.trust = new Trust(options.trustedProxies);
    this.bodies = new KeptBodies(limits);
    this.secureFields = hstsS > 0 ? [field("Strict-Transport-Security", `max-age=${hstsS}`)] : undefined;
    this.wakePage = options.wakePage;
    this.onAccess = options.onAccess;
    this.onFault = options.onFault;
  }

  /** Looks at all time limits. `now` is on the clock of `performance.now()`. */
  tick(now: number): void {
    for (const connection of this.connections) connection.tick(now);
    this.pool.sweep(now);
  }

  /** Gives open requests `graceMs` milliseconds to finish, and then cuts them and the sockets off, which ends `closed`. */
  async close(sockets: Iterable<Socket>, closed: Promise<unknown>, graceMs: number): Promise<void> {
    this.closing = true;
    for (const connection of this.connections) connection.finish();
    const patience = setTimeout(() => {
      for (const connection of this.connections) connection.cutRequests();
      for (const socket of sockets) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(patience);
    this.pool.close();
  }

  /** 1. The connection reads heads, parses them (2) and serves them (3 to 11), one after the other. */
  accept(socket: Socket, secure: boolean, seat: Seat): void {
    new ClientConnection(this, socket, peerOf(seat.address, secure, socket, this.trust), seat);
  }

  /** 1, for the proxy of another host. */
  acceptHost(socket: TLSSocket): void {
    const peer = { address: plainAddress(socket.remoteAddress ?? ""), secure: true, trusted: true, connection: socket };
    new ClientConnection(this, socket, peer, undefined);
  }

  /** 1, for a client that chose HTTP/2: each stream is a request, and they are served together. */
  acceptHttp2(socket: TLSSocket, seat: Seat): void {
    serveHttp2(this, socket, peerOf(seat.address, true, socket, this.trust), seat);
  }

  /** 2. */
  parse(head: string, before: FieldMemory): RequestMessage {
    return parseRequest(head, this.limits, before);
  }

  /** 3. Then everything else. */
  serve(client: ClientSide, message: RequestMessage, peer: Peer): RequestHandler {
    if (this.fromPeers) return this.#serveHost(client, message, peer);
    const origin = admit(message, peer, this.trust);
    const trace = this.#tracing?.begin(message, origin);
    const exchange = new Exchange(this, client, { message, origin, peer, trace });
    client.attach(exchange, message);
    this.requests += 1;
    const { framing } = message;
    const { bodyBytes } = this.limits;
    const challenge = isChallenge(message) ? this.#leases.challengeAnswer?.(message.host, message.target) : undefined;
    if (challenge !== undefined) exchange.answer(challenge);
    else if (framing.kind === "length" && framing.length > bodyBytes)
      exchange.refuse(toProxyRefusal(bodyTooLarge(bodyBytes)));
    else this.findMachine(exchange, false);
    return exchange;
  }

  /** 3, for a request that the proxy of another host has admitted, and which is for one machine here. */
  #serveHost(client: ClientSide, sent: RequestMessage, peer: Peer): RequestHandler {
    const request = readPeerRequest(sent);
    const trace = this.#tracing?.begin(request.message, request.origin);
    const exchange = new Exchange(this, client, { ...request, peer, trace });
    client.attach(exchange, sent);
    this.requests += 1;
    this.findMachine(exchange, false);
    return exchange;
  }

  /** 4 to 8, without waiting if a machine is running and a connection to it is kept. */
  findMachine(exchange: PathExchange, fresh: boolean): void {
    const { search } = exchange;
    try {
      const found = search.lease ?? this.#leaseOrWait(search);
      if (!(found instanceof Promise)) {
        search.lease = found;
        search.trace?.leased(found);
        const kept = fresh ? undefined : this.pool.take(found);
        if (kept !== undefined) return exchange.forward(kept);
      }
      background(this.#findLater(exchange, found, fresh), "finding a machine for a request");
    } catch (error) {
      exchange.refuse(search.refusalFor(error));
    }
  }

  /** 4 to 8, once this host knows more about the machine of a lease. */
  async findMoved(exchange: PathExchange, lease: Lease): Promise<void> {
    const { search } = exchange;
    try {
      await this.#leases.afterMove?.(lease, search.signal);
    } catch (error) {
      if (search.active) exchange.refuse(search.refusalFor(error));
    }
    if (search.active) this.findMachine(exchange, false);
  }

  /** 4 to 6. */
  #leaseOrWait(search: MachineSearch): Lease | Promise<Lease> {
    const request = search.head;
    const app = request.to?.app ?? this.#leases.route(request.host);
    return this.#leases.leaseNow(app, request) ?? this.#leases.waitForLease(app, request, search.signal);
  }

  /** 6 to 8, for a request that waits for a machine or for a connection to it. */
  async #findLater(exchange: PathExchange, found: Lease | Promise<Lease>, fresh: boolean): Promise<void> {
    const { search } = exchange;
    try {
      if (found instanceof Promise) await search.claim(found);
      while (search.active) {
        const lease = search.lease ?? (await search.claim(this.#leaseOrWait(search)));
        const connection = (fresh ? undefined : this.pool.take(lease)) ?? (await search.connect(lease));
        if (connection !== undefined) return exchange.forward(connection);
      }
    } catch (error) {
      // Otherwise the request ended in the meantime, and this is only the echo of its abort.
      if (search.active) exchange.refuse(search.refusalFor(error));
    }
  }

  /** 4, for a request that its app sends on. */
  replayTo(order: ReplayOrder, fromApp: string): Destination {
    return this.#leases.replayTo(order, fromApp);
  }

  /** 10 and 11. The exchange has sent the reply (9), or could not. */
  finish(exchange: PathExchange, error: string | undefined): void {
    this.requests -= 1;
    exchange.search.lease?.release({ status: exchange.status, error });
    const entry = exchange.accessEntry(error);
    exchange.search.trace?.ends(entry);
    this.onAccess(entry);
  }
}
