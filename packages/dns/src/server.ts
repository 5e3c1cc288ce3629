/** The machines' name server: it answers for `.internal`, and passes everything else on to the host's name servers. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { background } from "@hibernaut/lib/background";
import { addressesIn, answer, forUdp, parseQuery, Rcode, reply } from "./messages.ts";
import { judgeName, type NamePolicy, NO_POLICY, reachableIn } from "./policy.ts";
import { Quota } from "./quota.ts";
import { TcpMessages, tcpMessage } from "./tcp.ts";
import { askUpstream, hostNameServers, type NameServer } from "./upstream.ts";
import type { Zone } from "./zone.ts";

interface DnsOptions {
  /** The address to listen on, over UDP and TCP. */
  address: string;
  /** The port to listen on; 0 chooses a free one. */
  port: number;
  zone: Zone;
  /** The name servers for other names. Default: those of the host. */
  nameServers?: () => Promise<NameServer[]>;
  /** What machines may ask for. Default: anything. */
  policy?: NamePolicy;
}

/** Questions that are passed on at once. The limit per machine keeps one machine from blocking the others. */
const MAX_QUESTIONS = { total: 512, perClient: 64 };
const MAX_CONNECTIONS = { total: 256, perClient: 16 };
/** A connection without a question is closed after this. */
const IDLE_MS = 10_000;

/** A running name server. */
export class DnsServer {
  readonly #options: DnsOptions;
  readonly #udp: UdpSocket = createSocket("udp4");
  readonly #tcp: Server = createServer((socket) => this.#accept(socket));
  readonly #questions = new Quota(MAX_QUESTIONS);
  readonly #connections = new Quota(MAX_CONNECTIONS);
  readonly #sockets = new Set<Socket>();
  #closed = false;

  private constructor(options: DnsOptions) {
    this.#options = options;
  }

  /** Starts a name server. Rejects with the system's error when it cannot listen on the address. */
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
    server.#udp.on("message", (bytes, { address: client, port: at }) =>
      background(server.#answerUdp(bytes, client, at), "answering a DNS question"),
    );
    for (const part of [server.#udp, server.#tcp]) part.on("error", () => {});
    return server;
  }

  /** The port that the server listens on. */
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
          resolve(); // already closed, because it could not listen
        }
      }),
    ]);
  }

  /** Never rejects: whatever a machine sends, the others need this server, and the platform. */
  async #answerUdp(bytes: Buffer, client: string, port: number): Promise<void> {
    // A guest with root can send from port 0, to which nothing can be sent.
    if (port === 0) return;
    try {
      const response = await this.#respond(bytes, "udp", client);
      if (response === undefined || this.#closed) return;
      // The client may have gone to sleep or ended by now.
      this.#udp.send(response, port, client, () => {});
    } catch {
      // A datagram that cannot be answered is lost, like any other: the client asks again.
    }
  }

  async #respond(bytes: Buffer, transport: "udp" | "tcp", client: string): Promise<Buffer | undefined> {
    const query = parseQuery(bytes);
    if (query === undefined) return undefined;
    if (typeof query === "number") return reply(bytes, query);
    const { policy = NO_POLICY } = this.#options;
    const rules = policy.rulesOf(client);
    const verdict = judgeName(rules, query.name);
    if (verdict === "refuse") {
      policy.onRefused(client, query.name);
      return reply(bytes, Rcode.nameError);
    }
    /** What is sent is sent once the machine may reach what it says. */
    const told = async (response: Buffer, own: boolean) => {
      if (verdict === "answer" || rules === undefined) return response;
      const found = reachableIn(addressesIn(response), { own, isOutside: (address) => policy.isOutside(address) });
      return (await policy.learn(client, rules, found)) ? response : reply(bytes, Rcode.serverFailure);
    };
    const answered = answer(this.#options.zone, query, client);
    if (answered !== undefined) return told(transport === "udp" ? forUdp(answered, query.udpBytes) : answered, true);
    if (!this.#questions.take(client)) return reply(bytes, Rcode.serverFailure);
    try {
      const servers = (await (this.#options.nameServers ?? hostNameServers)()).filter(
        ({ address, port }) => address !== this.#options.address || port !== this.port,
      );
      const response = await askUpstream(bytes, transport, servers);
      return response === undefined ? reply(bytes, Rcode.serverFailure) : await told(response, false);
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
    background(this.#serve(socket, client), "answering DNS questions over TCP");
  }

  /** Answers one question after the other. Those that are not read yet wait in the kernel. */
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
      // The client closed the connection.
    }
    socket.destroy();
  }
}
