/** Answers what other hosts ask over the peer port, apart from requests to the API and to apps. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** Answers a request if it is for this route. Resolves with whether it was. Never rejects. */
export type PeerRoute = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

export class PeerServer {
  readonly #routes: PeerRoute[] = [];
  readonly #server: Server;

  constructor() {
    // What is sent may take as long as it takes: the disks of a machine, at the rate that the other host allows.
    this.#server = createServer({ requestTimeout: 0 }, (request, response) => void this.#answer(request, response));
  }

  /** Adds a route. */
  add(route: PeerRoute): void {
    this.#routes.push(route);
  }

  /** Takes a connection of another host. */
  accept(connection: Duplex): void {
    this.#server.emit("connection", connection);
  }

  close(): void {
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const route of this.#routes) if (await route(request, response)) return;
    response.writeHead(404, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: "not_found", message: "This host does not know the route." }));
  }
}
