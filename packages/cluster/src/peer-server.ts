/** Answers what other hosts ask over the peer port, apart from requests to the API and to apps. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { background } from "@hibernaut/lib/background";

/** Answers a request if it is for this route. Resolves with whether it was. Never rejects. */
export type PeerRoute = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

/** For how long a host may be silent, in milliseconds. */
export interface PeerPatience {
  /** Until the whole head of a connection's first request. */
  headMs: number;
  /** Until that of a further one. Longer than the other side keeps a connection without requests, which is 30 s. */
  idleMs: number;
  /** Between two pieces of a body. As long as it keeps coming, it may take as long as it takes: the disks of a machine, at the rate that the other host allows. */
  bodyMs: number;
}

const PATIENCE: PeerPatience = { headMs: 10_000, idleMs: 72_000, bodyMs: 120_000 };

export class PeerServer {
  readonly #routes: PeerRoute[] = [];
  readonly #server: Server;
  readonly #patience: PeerPatience;
  /** Connections without a request under way, each with what ends it. */
  readonly #waiting = new Map<Duplex, NodeJS.Timeout>();

  constructor(patience = PATIENCE) {
    this.#patience = patience;
    // Node holds servers to its other limits only if they listen, which this one does not.
    this.#server = createServer({ requestTimeout: 0, keepAliveTimeout: 0 }, (request, response) => {
      background(this.#answer(request, response), "answering another host");
    });
  }

  add(route: PeerRoute): void {
    this.#routes.push(route);
  }

  /** Takes a connection of another host. */
  accept(connection: Duplex): void {
    this.#await(connection, this.#patience.headMs);
    connection.once("close", () => this.#heard(connection));
    this.#server.emit("connection", connection);
  }

  close(): void {
    for (const connection of this.#waiting.keys()) connection.destroy();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    this.#heard(socket);
    // Node destroys the connection then.
    request.setTimeout(this.#patience.bodyMs);
    // An answer may take longer: an image is fetched first, or a machine that has moved is stored and checked. A route that
    // leaves the body before its end closes the request, and "end" never comes.
    const over = () => void socket.setTimeout(0);
    request.once("end", over).once("close", over);
    response.once("close", () => {
      if (!socket.destroyed) this.#await(socket, this.#patience.idleMs);
    });
    for (const route of this.#routes) if (await route(request, response)) return;
    response.writeHead(404, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: "not_found", message: "This host does not know the route." }));
  }

  #await(connection: Duplex, ms: number): void {
    this.#heard(connection);
    const timer = setTimeout(() => void connection.destroy(), ms);
    this.#waiting.set(connection, timer);
  }

  #heard(connection: Duplex): void {
    clearTimeout(this.#waiting.get(connection));
    this.#waiting.delete(connection);
  }
}
