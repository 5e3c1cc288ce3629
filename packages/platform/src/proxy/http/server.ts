/** The proxy's server: its ports, its clock, and its end. */
import { once } from "node:events";
import { createServer, type AddressInfo, type ListenOptions, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { AccessEntry, LeaseProvider } from "../contract.ts";
import { RequestPath } from "../request-path.ts";
import { Certificates } from "./certificates.ts";
import { DEFAULT_LIMITS, type Limits } from "./limits.ts";

export interface ProxyOptions {
  leases: LeaseProvider;
  /** One call for each request, when it has ended. */
  onAccess?: (entry: AccessEntry) => void;
  /** Faults that no client is told about: a LeaseProvider that throws, a certificate that cannot be read. */
  onFault?: (error: unknown) => void;
  /** Addresses and networks of proxies in front of this one, whose word about the client is believed. None by default. */
  trustedProxies?: readonly string[];
  limits?: Partial<Limits>;
  /** Serves TLS, with HTTP/2 for those who ask for it, instead of plain HTTP. */
  tls?: TlsOptions;
}

export interface TlsOptions {
  /** See {@link Certificates}. */
  folder: string;
  /** How often the folder is looked at, in milliseconds; 2000 by default. */
  refreshMs?: number;
}

/** `reusePort` lets several processes share the port; the kernel spreads the connections. */
export type ProxyListen = Pick<ListenOptions, "host" | "port" | "reusePort" | "backlog">;

export interface ProxyServer {
  /** Accepts connections from now on. Resolves with the address, which tells the port that 0 stood for. */
  listen(listen: ProxyListen): Promise<AddressInfo>;
  /** Accepts no more, lets open requests finish for `graceMs` milliseconds, then cuts them. */
  close(graceMs: number): Promise<void>;
  /** Whether it can answer for a host name: over TLS it needs a certificate for it. */
  covers(hostname: string): boolean;
  /** Closes what is kept open to the machine. To be called before it is suspended or stopped. */
  forget(machineId: string): void;
  /** Client connections, upgraded ones and those in a handshake included. */
  openConnections(): number;
  stats(): ProxyStats;
}

export interface ProxyStats {
  /** Requests under way, upgraded connections included. */
  requests: number;
  clientConnections: number;
  machineConnections: number;
  /** Those of them that wait for a request. */
  idleMachineConnections: number;
}

const REFRESH_MS = 2000;

/**
 * A reverse proxy whose lease provider decides where requests go.
 *
 * @example
 * const proxy = createProxyServer({ leases });
 * const { port } = await proxy.listen({ host: "127.0.0.1", port: 0 });
 * await proxy.close(5000);
 */
export function createProxyServer(options: ProxyOptions): ProxyServer {
  return new HttpProxy(options);
}

class HttpProxy implements ProxyServer {
  readonly #path: RequestPath;
  readonly #tls: TlsOptions | undefined;
  /** All client sockets, from accept to close. */
  readonly #sockets = new Set<Socket>();
  readonly #timers: NodeJS.Timeout[] = [];
  #server: Server | undefined;
  #certificates: Certificates | undefined;

  constructor({ leases, onAccess, onFault, trustedProxies = [], limits: some, tls }: ProxyOptions) {
    const limits = { ...DEFAULT_LIMITS, ...some };
    this.#tls = tls;
    this.#path = new RequestPath({
      leases,
      limits,
      trustedProxies,
      onAccess: onAccess ?? (() => {}),
      onFault: onFault ?? (() => {}),
    });
  }

  async listen(listen: ProxyListen): Promise<AddressInfo> {
    if (this.#server !== undefined) throw new Error("A proxy listens once.");
    const server = this.#tls === undefined ? this.#plainServer() : await this.#tlsServer(this.#tls);
    this.#server = server;
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.listen(listen);
    await once(server, "listening");
    // Running out of file descriptors, for one, passes; it must not end the process.
    server.on("error", (error) => this.#path.onFault(error));
    this.#every(this.#path.limits.sweepMs, () => this.#sweep(performance.now()));
    return server.address() as AddressInfo;
  }

  async close(graceMs: number): Promise<void> {
    const { connections, pool } = this.#path;
    this.#path.closing = true;
    const server = this.#server;
    if (server === undefined) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const connection of connections) connection.finish();
    const patience = setTimeout(() => this.#cut(), graceMs);
    await closed;
    clearTimeout(patience);
    for (const timer of this.#timers) clearInterval(timer);
    pool.close();
  }

  covers(hostname: string): boolean {
    return this.#tls === undefined || this.#certificates?.find(hostname) !== undefined;
  }

  forget(machineId: string): void {
    this.#path.pool.forget(machineId);
  }

  openConnections(): number {
    return this.#sockets.size;
  }

  stats(): ProxyStats {
    const { open, idle } = this.#path.pool.count();
    return {
      requests: this.#path.requests,
      clientConnections: this.#sockets.size,
      machineConnections: open,
      idleMachineConnections: idle,
    };
  }

  #plainServer(): Server {
    return createServer({ noDelay: true, allowHalfOpen: true }, (socket) => this.#path.accept(socket, false));
  }

  async #tlsServer({ folder, refreshMs = REFRESH_MS }: TlsOptions): Promise<Server> {
    const certificates = await Certificates.open(folder, this.#path.onFault);
    this.#certificates = certificates;
    const server = createTlsServer({
      ALPNProtocols: ["h2", "http/1.1"],
      // Not half-open, as plain connections are: a client that left in its handshake would never be noticed.
      allowHalfOpen: false,
      noDelay: true,
      handshakeTimeout: this.#path.limits.handshakeMs,
      minVersion: "TLSv1.2",
      ...certificates.fallback,
      SNICallback: (name, done) => {
        const context = certificates.find(name);
        if (context === undefined) done(new Error("There is no certificate for this name."));
        else done(null, context);
      },
    });
    server.on("secureConnection", (socket: TLSSocket) => {
      if (socket.alpnProtocol === "h2") this.#path.acceptHttp2(socket);
      else this.#path.accept(socket, true);
    });
    server.on("tlsClientError", (_error, socket) => socket.destroy());
    const refresh = async () => {
      await certificates.refresh();
      server.setSecureContext(certificates.fallback);
    };
    this.#every(refreshMs, () => void refresh());
    return server;
  }

  #every(ms: number, work: () => void): void {
    this.#timers.push(setInterval(work, ms).unref());
  }

  #sweep(now: number): void {
    for (const connection of this.#path.connections) connection.tick(now);
    this.#path.pool.sweep(now);
  }

  #cut(): void {
    for (const connection of this.#path.connections) connection.cutRequests();
    for (const socket of this.#sockets) socket.destroy();
  }
}
