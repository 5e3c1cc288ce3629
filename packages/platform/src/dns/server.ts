/** The machines' name server: `.internal` from the platform, everything else from the host's name servers. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { answer, forUdp, parseQuery, Rcode, reply } from "./messages.ts";
import { Quota } from "./quota.ts";
import { TcpMessages, tcpMessage } from "./tcp.ts";
import { askUpstream, hostNameServers, type NameServer } from "./upstream.ts";
import type { Zone } from "./zone.ts";

interface DnsOptions {
  /** Where to listen, over UDP and TCP. */
  address: string;
  /** 53; port 0 takes a free one. */
  port: number;
  zone: Zone;
  /** Whom to ask what is not ours; the host's name servers when absent. */
  nameServers?: () => Promise<NameServer[]>;
}

/** Questions passed on at once, of all machines and of one: none can take the name server from the others. */
const MOST_QUESTIONS = { all: 512, each: 64 };
const MOST_CONNECTIONS = { all: 256, each: 16 };
/** A connection that asks nothing is closed. */
const IDLE_MS = 10_000;

export class DnsServer {
  readonly #options: DnsOptions;
  readonly #udp: UdpSocket = createSocket("udp4");
  readonly #tcp: Server = createServer((socket) => this.#accept(socket));
  readonly #questions = new Quota(MOST_QUESTIONS);
  readonly #connections = new Quota(MOST_CONNECTIONS);
  readonly #sockets = new Set<Socket>();
  #closed = false;

  private constructor(options: DnsOptions) {
    this.#options = options;
  }

  /** Rejects with the system's error when the address cannot be had. */
  static async open(options: DnsOptions): Promise<DnsServer> {
    const server = new DnsServer(options);
    const { address, port } = options;
    try {
      server.#tcp.listen(port, address);
      await once(server.#tcp, "listening");
      server.#udp.bind(server.port, address);
      await once(server.#udp, "listening");
    } catch (error) {
      await server.close();
      throw error;
    }
    server.#udp.on("message", (bytes, { address: client, port: at }) => void server.#answerUdp(bytes, client, at));
    for (const part of [server.#udp, server.#tcp]) part.on("error", () => {});
    return server;
  }

  get port(): number {
    const at = this.#tcp.address();
    return typeof at === "object" && at !== null ? at.port : 0;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all([
      new Promise<void>((resolve) => this.#tcp.close(() => resolve())),
      new Promise<void>((resolve) => {
        try {
          this.#udp.close(() => resolve());
        } catch {
          resolve(); // it is closed, because it could not listen
        }
      }),
    ]);
  }

  async #answerUdp(bytes: Buffer, client: string, port: number): Promise<void> {
    const response = await this.#respond(bytes, "udp", client);
    if (response === undefined || this.#closed) return;
    // The client may be gone, or asleep, by now.
    this.#udp.send(response, port, client, () => {});
  }

  async #respond(bytes: Buffer, transport: "udp" | "tcp", client: string): Promise<Buffer | undefined> {
    const query = parseQuery(bytes);
    if (query === undefined) return undefined;
    if (typeof query === "number") return reply(bytes, query);
    const own = answer(this.#options.zone, query);
    if (own !== undefined) return transport === "udp" ? forUdp(own, query.udpBytes) : own;
    if (!this.#questions.take(client)) return reply(bytes, Rcode.serverFailure);
    try {
      const servers = (await (this.#options.nameServers ?? hostNameServers)()).filter(
        ({ address, port }) => address !== this.#options.address || port !== this.port,
      );
      return (await askUpstream(bytes, transport, servers)) ?? reply(bytes, Rcode.serverFailure);
    } catch {
      return reply(bytes, Rcode.serverFailure);
    } finally {
      this.#questions.giveBack(client);
    }
  }

  #accept(socket: Socket): void {
    const client = socket.remoteAddress ?? "";
    if (!this.#connections.take(client)) return void socket.destroy();
    this.#sockets.add(socket);
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#connections.giveBack(client);
    });
    void this.#serve(socket, client);
  }

  /** One question after the other: what is not read yet waits in the kernel. */
  async #serve(socket: Socket, client: string): Promise<void> {
    const messages = new TcpMessages();
    try {
      for await (const chunk of socket) {
        for (const bytes of messages.push(chunk as Buffer)) {
          const response = await this.#respond(bytes, "tcp", client);
          if (response !== undefined && !socket.destroyed) socket.write(tcpMessage(response));
        }
      }
    } catch {
      // The client broke off.
    }
    socket.destroy();
  }
}
