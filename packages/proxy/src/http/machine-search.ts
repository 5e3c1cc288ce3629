/** One request's search for a machine and a connection to it: what was tried, what was leased, and why it ended. */
import type { Socket } from "node:net";
import type { Shares } from "@hibernaut/connections";
import type { RequestTrace } from "@hibernaut/telemetry";
import { type Destination, type Lease, ProxyRefusal, type RequestHead } from "../contract.ts";
import type { Peer } from "./admission.ts";
import { type AppRequest, MachineLeft } from "./app-request.ts";
import { connect, type MoreOptions } from "./connect.ts";
import { connectPeer } from "./connect-peer.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import type { Origin } from "./heads.ts";
import type { Limits } from "./limits.ts";
import {
  ENDINGS,
  hostUnreachable,
  REFUSALS,
  tooManyConnections,
  toProxyRefusal,
  unreachableMachine,
} from "./refusals.ts";
import type { RequestMessage } from "./request.ts";

const NONE_TRIED: readonly string[] = [];

/** A request that was admitted. */
export interface Begun {
  message: RequestMessage;
  origin: Origin;
  peer: Peer;
  /** Undefined when it is not traced. */
  trace: RequestTrace | undefined;
  /** Where the request goes, if the proxy of another host has decided that. */
  to?: Destination;
  /** The value of `fly-replay-src` that the app gets, if that proxy says so. */
  source?: string | undefined;
}

/** What all searches share. */
interface SearchPorts {
  readonly limits: Readonly<Limits>;
  readonly pool: ConnectionPool;
  readonly machines: Shares;
  onFault(error: unknown): void;
}

export class MachineSearch {
  readonly #ports: SearchPorts;
  /** The request as the lease provider sees it, with the machines that failed. */
  head: RequestHead;
  /** The request's spans. Undefined, the usual case, when it is not traced. */
  readonly trace: RequestTrace | undefined;
  lease: Lease | undefined;
  /** Whether the request still needs a machine: neither sent nor ended. */
  active = true;
  /** Why the last of the machines did not answer. */
  #failure: ProxyRefusal | undefined;
  /** How many guests have ended with the request. */
  #ended = 0;
  /** Made only for requests that wait: most find a machine and a connection to it at once. */
  #abort: AbortController | undefined;
  /** Why the request ended. */
  #endedBy: Error | undefined;

  /** When the request came, or was sent on. */
  #came: number;

  /** @param came when the request came, on the clock of `performance.now()` */
  constructor(ports: SearchPorts, { message, origin, peer, trace, to }: Begun, came: number) {
    this.#ports = ports;
    // Without a spread, which would make one object more: this runs for every request.
    this.head = {
      method: message.method,
      target: message.target,
      host: message.host,
      httpVersion: message.httpVersion,
      fields: message.fields,
      clientAddress: origin.clientAddress,
      secure: origin.secure,
      requestId: origin.requestId,
      connection: peer.connection,
      tried: NONE_TRIED,
      since: undefined,
      to,
      trace,
    };
    this.#came = came;
    this.trace = trace;
  }

  /** Aborts when the request ends. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#endedBy !== undefined) this.#abort.abort(this.#endedBy);
    return this.#abort.signal;
  }

  /** Takes the lease that the request waited for. Gives it back and throws if it comes too late. */
  async claim(found: Lease | Promise<Lease>): Promise<Lease> {
    if (found instanceof Promise) this.trace?.holds();
    const lease = await found;
    if (this.active) {
      this.lease = lease;
      this.trace?.leased(lease);
      return lease;
    }
    const { status, code } = this.#endedBy instanceof ProxyRefusal ? this.#endedBy : CLIENT_GONE;
    lease.release({ status, error: code });
    throw new Error("The request has ended.");
  }

  /** Opens a connection to the machine. Returns undefined if the request should go to another machine. */
  async connect(lease: Lease): Promise<AppRequest | undefined> {
    const { address, port, connectDeadline: deadline } = lease;
    const { limits, pool, machines } = this.#ports;
    const { signal, trace } = this;
    trace?.connects();
    try {
      const open = (left: AbortSignal, more?: MoreOptions) => {
        const either = AbortSignal.any([signal, left]);
        return counted(machines, lease.appName, () => {
          if (lease.peer === undefined) return connect({ address, port, deadline, signal: either, limits, more });
          return connectPeer(lease.peer.target("http"), { timeoutMs: limits.peerConnectMs, signal: either, more });
        });
      };
      const connection = await pool.add(lease, open, signal);
      trace?.connected();
      return connection;
    } catch (error) {
      trace?.connected(error);
      if (!this.active || (error instanceof ProxyRefusal && error.code !== "host_unreachable")) throw error;
      // The machine may be the right one again once it is back or awake.
      if (error instanceof MachineLeft) return this.#giveBack("machine_left");
      const { peer, appName } = lease;
      const failure =
        peer === undefined ? unreachableMachine(lease, error) : hostUnreachable(appName, peer.host, error);
      if (this.tryAnother(failure)) return undefined;
      throw failure;
    }
  }

  /**
   * Gives a machine back that failed. Returns false if the request has used all its tries; refusing the request then
   * releases the lease.
   */
  tryAnother(failure: ProxyRefusal): boolean {
    this.#failure = failure;
    if (this.lease !== undefined) this.head = { ...this.head, tried: [...this.head.tried, this.lease.machineId] };
    if (this.head.tried.length >= this.#ports.limits.tries) return false;
    this.#giveBack(failure.code);
    return true;
  }

  /**
   * Gives back a machine whose guest ended with the request: it may be the right one again once it has been started.
   * Returns false if that has happened too often; the request may be what ends it.
   */
  startAgain(): boolean {
    this.#ended += 1;
    if (this.#ended >= this.#ports.limits.tries) return false;
    this.#giveBack("machine_left");
    return true;
  }

  /** Gives back a machine whose app sends the request on, and begins again with where to. */
  sendTo(to: Destination): void {
    this.head = { ...this.head, to, tried: [], since: undefined };
    this.#came = performance.now();
    this.#failure = undefined;
    this.#ended = 0;
    this.trace?.sentOn();
    this.lease?.release({});
    this.lease = undefined;
  }

  /** Ends the search, and what is waiting for it, for good. */
  end(reason: Error): void {
    this.active = false;
    this.#endedBy = reason;
    this.#abort?.abort(reason);
  }

  /** Returns what to tell the client about an error. Reports faults of the proxy, whose details are not shown. */
  refusalFor(error: unknown): ProxyRefusal {
    const refusal = toProxyRefusal(error);
    // Why the only machine did not answer says more than that there is no other.
    if (refusal.code === "no_machine_left" && this.#failure !== undefined && this.head.tried.length === 1)
      return this.#failure;
    if (refusal.status === REFUSALS.internal) this.#ports.onFault(error);
    return refusal;
  }

  #giveBack(why: string): undefined {
    this.head = { ...this.head, since: this.#came };
    this.lease?.release({ error: why });
    this.lease = undefined;
    this.trace?.gaveUp(why);
  }
}

const CLIENT_GONE = { status: undefined, code: ENDINGS.clientGone };

/** Makes a connection that counts for its app until it is closed. Refuses if the app may have no more. */
async function counted(machines: Shares, app: string, open: () => Promise<Socket>): Promise<Socket> {
  if (!machines.take(app)) throw tooManyConnections();
  const give = () => machines.give(app);
  try {
    const socket = await open();
    socket.once("close", give);
    return socket;
  } catch (error) {
    give();
    throw error;
  }
}
