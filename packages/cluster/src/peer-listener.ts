/** The peer port: one TLS listener for everything that other hosts ask of this one. ALPN says for what a connection is. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { createSecureContext, createServer, type SecureContextOptions, type Server, type TLSSocket } from "node:tls";
import { cannotListen } from "@hibernaut/connections";
import { keyFingerprint, type Pair } from "@hibernaut/lib/certificates";
import type { Listen } from "@hibernaut/settings";
import type { PeerService, View } from "./cluster.ts";
import { KEYS } from "./keys.ts";
import { ALPN } from "./peers.ts";

/** How long a TLS handshake may take. */
const HANDSHAKE_MS = 10_000;
/** After which silence the kernel asks whether the other host is still there. */
const KEEP_ALIVE_MS = 10_000;

/** Takes a connection. `from` is the name of the host that made it. */
export type PeerHandler = (socket: TLSSocket, from: string) => void;

interface ListenerOptions {
  view: View;
  /** PEM, of the authority. */
  authority: string;
  identity: Pair;
  /** Is told of connections that were refused, for the log. */
  onRefused?(why: string, address: string | undefined): void;
}

export class PeerListener {
  readonly #server: Server;
  readonly #options: ListenerOptions;
  readonly #sockets = new Set<Socket>();
  /** The connections of members, with what their certificates say. */
  readonly #members = new Map<TLSSocket, Caller>();
  readonly #handlers = new Map<string, PeerHandler>();
  readonly #unsubscribe: () => void;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#server = createServer({
      ...contextOf(options.authority, options.identity),
      requestCert: true,
      // Whether a certificate is needed depends on what the connection is for: see `#accept`.
      rejectUnauthorized: false,
      minVersion: "TLSv1.3",
      handshakeTimeout: HANDSHAKE_MS,
      ALPNCallback: ({ protocols }) => protocols.find((protocol) => Object.values(ALPN).includes(protocol)),
    });
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
    });
    this.#server.on("tlsClientError", (error, socket) => options.onRefused?.(error.message, socket.remoteAddress));
    this.#server.on("secureConnection", (socket) => this.#accept(socket));
    this.#unsubscribe = options.view.subscribe(KEYS.members, () => this.#cutStrangers());
  }

  /** Who takes connections for a service. Until there is one, they are closed. */
  handle(service: PeerService | "join", handler: PeerHandler): void {
    this.#handlers.set(ALPN[service], handler);
  }

  /** Opens the port. Returns the one that the system chose, if it was to. Rejects with `unavailable` when it cannot be opened. */
  async listen(at: Listen): Promise<number> {
    try {
      this.#server.listen(at.port, at.host);
      await once(this.#server, "listening");
    } catch (error) {
      throw await cannotListen("The port for other hosts", at, "HIBERNAUT_PEER_LISTEN", error);
    }
    return (this.#server.address() as AddressInfo).port;
  }

  /** Shows a renewed certificate from now on. */
  renew(identity: Pair): void {
    this.#server.setSecureContext(contextOf(this.#options.authority, identity));
  }

  /** Closes the port and every connection. */
  async close(): Promise<void> {
    this.#unsubscribe();
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #accept(socket: TLSSocket): void {
    // Who uses the connection listens to its errors, too. This keeps one that comes before from ending the process.
    socket.on("error", () => {});
    const handler = this.#handlers.get(socket.alpnProtocol || "");
    const isJoin = socket.alpnProtocol === ALPN.join;
    const caller = isJoin ? undefined : callerOf(socket);
    const isWelcome = isJoin || (caller !== undefined && this.#isMember(caller));
    if (!isWelcome) this.#options.onRefused?.("no certificate of a member of the cluster", socket.remoteAddress);
    if (!isWelcome || handler === undefined) return void socket.destroy();
    if (caller !== undefined) {
      this.#members.set(socket, caller);
      socket.once("close", () => this.#members.delete(socket));
    }
    handler(socket, caller?.name ?? "");
  }

  #isMember({ name, fingerprint }: Caller): boolean {
    return this.#options.view.host(name)?.member.fingerprint === fingerprint;
  }

  /** A host that was removed has no rights any more, also on connections that it has opened before. */
  #cutStrangers(): void {
    for (const [socket, caller] of this.#members) if (!this.#isMember(caller)) socket.destroy();
  }
}

/** Who a certificate of the authority says that it belongs to. */
interface Caller {
  name: string;
  fingerprint: string;
}

/** Undefined without such a certificate. */
function callerOf(socket: TLSSocket): Caller | undefined {
  const raw = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (raw === undefined) return undefined;
  const certificate = new X509Certificate(raw.raw);
  const name = /^CN=(.+)$/m.exec(certificate.subject)?.[1] ?? "";
  return { name, fingerprint: keyFingerprint(certificate) };
}

function contextOf(authority: string, { certificate, key }: Pair): SecureContextOptions {
  // The authority goes along: a host that joins knows only its fingerprint.
  const options = { ca: authority, cert: `${certificate}\n${authority}`, key };
  createSecureContext(options);
  return options;
}
