/** Where the proxies of other hosts send requests for this host's machines: the same HTTP engine, on their connections. */
import type { TLSSocket } from "node:tls";
import { OWN_WAKE_PAGE } from "../http/wake-page.ts";
import { RequestPath, type RequestPathOptions } from "../request-path.ts";

type PeerFrontOptions = Pick<RequestPathOptions, "leases" | "limits" | "machines" | "tracing" | "onFault">;

export class PeerFront {
  readonly #path: RequestPath;
  readonly #sockets = new Set<TLSSocket>();
  readonly #sweep: NodeJS.Timeout;

  constructor(options: PeerFrontOptions) {
    this.#path = new RequestPath({
      ...options,
      fromPeers: true,
      // What follows is the first proxy's business: it knows the client, and logs the request.
      ...{ trustedProxies: [], hstsS: 0, wakePage: OWN_WAKE_PAGE, onAccess: () => {} },
    });
    this.#sweep = setInterval(() => this.#path.tick(performance.now()), options.limits.sweepMs).unref();
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
    const closed = [...this.#sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve)));
    await this.#path.close(this.#sockets, Promise.all(closed), graceMs);
    clearInterval(this.#sweep);
  }
}
