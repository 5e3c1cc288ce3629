/** Where the proxies of other hosts send requests for this host's machines: the same HTTP engine, on their connections. */
import type { TLSSocket } from "node:tls";
import type { Shares } from "@hibernaut/connections";
import type { Tracing } from "@hibernaut/telemetry";
import type { LeaseProvider } from "../contract.ts";
import type { Limits } from "../http/limits.ts";
import { OWN_WAKE_PAGE } from "../http/wake-page.ts";
import { RequestPath } from "../request-path.ts";

interface PeerFrontOptions {
  leases: LeaseProvider;
  limits: Limits;
  /** How many connections to machines there may be, by app. */
  machines: Shares;
  /** Undefined when traces are off. */
  tracing: Tracing | undefined;
  /** A fault that no client is told about. */
  onFault(error: unknown): void;
}

export class PeerFront {
  readonly #path: RequestPath;
  readonly #sockets = new Set<TLSSocket>();
  readonly #sweep: NodeJS.Timeout;

  constructor({ leases, limits, machines, tracing, onFault }: PeerFrontOptions) {
    this.#path = new RequestPath({
      ...{ leases, limits, machines, tracing, onFault, fromPeers: true },
      // What follows is the first proxy's business: it knows the client, and logs the request.
      ...{ trustedProxies: [], hstsS: 0, wakePage: OWN_WAKE_PAGE, onAccess: () => {} },
    });
    this.#sweep = setInterval(() => this.#look(performance.now()), limits.sweepMs).unref();
  }

  /** Serves a connection whose other end has shown the certificate of a host. */
  accept(socket: TLSSocket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    this.#path.acceptHost(socket);
  }

  /** The machine is about to sleep, or has left: see `ConnectionPool.forget`. */
  forget(machineId: string, ended: boolean): void {
    this.#path.pool.forget(machineId, ended);
  }

  /** Gives open requests `graceMs` milliseconds to finish, and then cuts them off. */
  async close(graceMs: number): Promise<void> {
    this.#path.closing = true;
    const closed = Promise.all(
      [...this.#sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve))),
    );
    for (const connection of this.#path.connections) connection.finish();
    const patience = setTimeout(() => {
      for (const connection of this.#path.connections) connection.cutRequests();
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(patience);
    clearInterval(this.#sweep);
    this.#path.pool.close();
  }

  #look(now: number): void {
    for (const connection of this.#path.connections) connection.tick(now);
    this.#path.pool.sweep(now);
  }
}
