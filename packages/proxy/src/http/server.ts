/** The proxy's HTTP server: opens its port, looks at time limits, and closes. Requests take the way in request-path.ts. */
import { once } from "node:events";
import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { BACKLOG, ConnectionBudget, connectionLimits, guard } from "@hibernaut/connections";
import { background } from "@hibernaut/lib/background";
import { mostFiles } from "@hibernaut/lib/open-files";
import type { Tracing } from "@hibernaut/telemetry";
import type { AccessEntry, LeaseProvider } from "../contract.ts";
import { RequestPath } from "../request-path.ts";
import { Balancers } from "./balancers.ts";
import { type CertificateFolders, Certificates } from "./certificates.ts";
import { DEFAULT_LIMITS, type Limits } from "./limits.ts";
import { answerChallenges } from "./tls-challenges.ts";
import { plainAddress } from "./trust.ts";
import { OWN_WAKE_PAGE, type WakePage } from "./wake-page.ts";

export interface ProxyOptions {
  leases: LeaseProvider;
  /** How many connections there may be, at this port and others. By default, this port has all that the process may have. */
  connections?: ConnectionBudget;
  /** Called once for each request, when it has ended. */
  onAccess?: (entry: AccessEntry) => void;
  /** Called for faults that no client is told about: a lease provider that throws, a certificate that cannot be read. */
  onFault?: (error: unknown) => void;
  /** Addresses and networks of proxies in front of this one, which are believed about the client. None by default. */
  trustedProxies?: readonly string[];
  /** Addresses and networks of load balancers whose connections begin with a PROXY protocol header. None by default. */
  balancers?: readonly string[];
  limits?: Partial<Limits>;
  /** How many seconds browsers that came over TLS are told to use nothing else for the hostname; 0, the default: they are not told. */
  hstsS?: number;
  /** What a browser is shown while a machine cold starts. By default, the page that comes with Hibernaut. */
  wakePage?: WakePage;
  /** Traces requests. By default, nothing does. */
  tracing?: Tracing | undefined;
  /** Serves TLS, with HTTP/2 for clients that choose it, instead of plain HTTP. */
  tls?: TlsOptions;
}

export interface TlsOptions extends CertificateFolders {
  /** How often to look for changes in the directories, in milliseconds; 2000 by default. */
  refreshMs?: number;
}

/** With `reusePort`, several processes can share the port, and the kernel spreads the connections. */
type ProxyListen = Pick<ListenOptions, "host" | "port" | "reusePort" | "backlog">;

interface ProxyStats {
  /** Requests in progress, including upgraded connections. */
  requests: number;
  /** Including upgraded ones, and those in a handshake. */
  clientConnections: number;
  machineConnections: number;
  /** Machine connections that are kept for the next request. */
  idleMachineConnections: number;
}

/** How often to look for changes in the directories of certificates, in milliseconds. */
export const REFRESH_MS = 2000;

/**
 * Creates a reverse proxy whose lease provider decides where requests are sent.
 *
 * @example
 * const proxy = createProxyServer({ leases });
 * const { port } = await proxy.listen({ host: "127.0.0.1", port: 0 });
 * await proxy.close(5000);
 */
export function createProxyServer(options: ProxyOptions): ProxyServer {
  return new ProxyServer(options);
}

/** Made by {@link createProxyServer}. */
export class ProxyServer {
  readonly #path: RequestPath;
  readonly #leases: LeaseProvider;
  readonly #tls: TlsOptions | undefined;
  /** Undefined if there are none. */
  readonly #balancers: Balancers | undefined;
  readonly #budget: ConnectionBudget;
  /** All client sockets, from accept to close. */
  readonly #sockets = new Set<Socket>();
  readonly #timers: NodeJS.Timeout[] = [];
  #server: Server | undefined;
  #certificates: Certificates | undefined;

  constructor(options: ProxyOptions) {
    const {
      leases,
      connections = new ConnectionBudget(connectionLimits(mostFiles())),
      onAccess = () => {},
      onFault = () => {},
      trustedProxies = [],
      limits: some,
      hstsS = 0,
      wakePage = OWN_WAKE_PAGE,
      tracing,
      tls,
      balancers: from = [],
    } = options;
    const limits = { ...DEFAULT_LIMITS, ...some };
    this.#leases = leases;
    this.#tls = tls;
    this.#budget = connections;
    if (from.length > 0) this.#balancers = new Balancers({ from, limits, budget: connections, onAccess });
    const { machines } = connections;
    const parts = { leases, machines, limits, trustedProxies, hstsS, wakePage, onAccess, onFault, tracing };
    this.#path = new RequestPath(parts);
  }

  /** Starts to accept connections. Resolves with the address, which has the real port if 0 was given. */
  async listen(listen: ProxyListen): Promise<AddressInfo> {
    if (this.#server !== undefined) throw new Error("A proxy can listen only once.");
    const inner = this.#tls === undefined ? this.#plainServer() : await this.#tlsServer(this.#tls);
    const server = this.#balancers?.inFrontOf(inner, { tls: this.#tls !== undefined }) ?? inner;
    this.#server = server;
    guard(server, (socket) => this.#admit(socket));
    server.listen({ backlog: BACKLOG, ...listen });
    await once(server, "listening");
    // Running out of file descriptors, for example, is temporary, and must not end the process.
    server.on("error", (error) => this.#path.onFault(error));
    this.#every(this.#path.limits.sweepMs, () => this.#path.tick(performance.now()));
    return server.address() as AddressInfo;
  }

  /** Stops accepting, gives open requests `graceMs` milliseconds to finish, and then cuts them off. */
  async close(graceMs: number): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    await this.#path.close(this.#sockets, closed, graceMs);
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** What it shows over TLS. Undefined without TLS, and until it listens. */
  get certificates(): Certificates | undefined {
    return this.#certificates;
  }

  /** Returns whether the proxy can answer for a hostname: over TLS it needs a certificate. */
  covers(hostname: string): boolean {
    return this.#tls === undefined || this.#certificates?.find(hostname) !== undefined;
  }

  /**
   * Closes the connections to a machine. Call it before the machine is suspended or stopped, and with `ended` when its
   * guest is gone: requests that it did not answer then fail, or wait for a machine again if they may be repeated.
   */
  forget(machineId: string, ended = false): void {
    this.#path.pool.forget(machineId, ended);
  }

  /** Closes the connections to another host's proxy, which is away: requests on them fail, or go elsewhere if they may. */
  forgetHost(host: string): void {
    this.#path.pool.forgetHost(host);
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
    return createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
      const seat = this.#budget.seatOf(socket);
      if (seat !== undefined) this.#path.accept(socket, false, seat);
    });
  }

  async #tlsServer({ refreshMs = REFRESH_MS, ...folders }: TlsOptions): Promise<Server> {
    const certificates = await Certificates.open(folders, this.#path.onFault);
    this.#certificates = certificates;
    const server = createTlsServer({
      ALPNProtocols: ["h2", "http/1.1"],
      // Unlike plain connections, not half-open: a client that left during its handshake would never be noticed.
      allowHalfOpen: false,
      noDelay: true,
      handshakeTimeout: this.#path.limits.handshakeMs,
      minVersion: "TLSv1.2",
      ...certificates.fallback,
      SNICallback: (name, done) => {
        const context = certificates.find(name);
        if (context === undefined) done(new Error("No certificate for this name."));
        else done(null, context);
      },
    });
    server.on("secureConnection", (socket: TLSSocket) => {
      const seat = this.#budget.seatOf(socket);
      if (seat === undefined) socket.destroy();
      else if (socket.alpnProtocol === "h2") this.#path.acceptHttp2(socket, seat);
      else this.#path.accept(socket, true, seat);
    });
    server.on("tlsClientError", (_error, socket) => socket.destroy());
    const refresh = async () => {
      await certificates.refresh();
      server.setSecureContext(certificates.fallback);
    };
    this.#every(refreshMs, () => background(refresh(), "reading the certificate again"));
    return answerChallenges(server, {
      certificates: () => this.#leases.challengeCertificates,
      handshakeMs: this.#path.limits.handshakeMs,
    });
  }

  #admit(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress ?? "");
    const many = this.#path.trust.has(address) || this.#balancers?.has(address) === true;
    const app = this.#leases.appOfAddress?.(address);
    if (this.#budget.admit(socket, { many, app, tls: this.#tls !== undefined }) === undefined) return;
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  #every(ms: number, work: () => void): void {
    this.#timers.push(setInterval(work, ms).unref());
  }
}
