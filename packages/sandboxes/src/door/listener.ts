/** The one port of all that sandboxes answer: control, files and processes, and the ports of sandboxes. */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Duplex } from "node:stream";
import {
  BACKLOG,
  type ConnectionBudget,
  cannotListen,
  guardHttp,
  RequestPlaces,
  TOO_MANY_REQUESTS,
} from "@hibernaut/connections";
import { background } from "@hibernaut/lib/background";
import type { Listen } from "@hibernaut/settings";
import { failureOf, Refusal } from "../failure.ts";

/** What requests are for. */
export interface Door {
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
  /** Whether pages of any origin may ask. Programs in sandboxes decide for themselves. */
  allowsPages(request: IncomingMessage): boolean;
  /** The body of a refusal. */
  refusal(request: IncomingMessage, error: unknown): { status: number; body: object };
}

interface ListenOptions {
  at: Listen;
  /** Paths of PEM files. Without them: plain HTTP. */
  tls?: { cert: string; key: string } | undefined;
  connections: ConnectionBudget;
  log: { warn(details: object, message: string): void };
}

/** Opens the port. Rejects with `unavailable` if that is not possible. */
export async function openDoor(
  door: Door,
  { at, tls, connections, log }: ListenOptions,
): Promise<{ url: string; close(): Promise<void> }> {
  const places = new RequestPlaces(connections);
  const handler = (request: IncomingMessage, response: ServerResponse) => {
    // The adapter of the services listens once more for every message that it writes.
    response.setMaxListeners(0);
    if (door.allowsPages(request)) {
      allowBrowsers(request, response);
      if (request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined) {
        response.writeHead(204).end();
        return;
      }
      // What goes to programs in sandboxes is open to everybody, who must not take the places of those with a key.
      if (!places.take(request, response)) {
        response.setHeader("Retry-After", "1");
        refuse(door, request, response, new Refusal(429, TOO_MANY_REQUESTS), log);
        return;
      }
    }
    background(
      door.handle(request, response).catch((error: unknown) => refuse(door, request, response, error, log)),
      "a request to a sandbox",
    );
  };
  const server: Server =
    tls === undefined
      ? createServer(handler)
      : createTlsServer({ cert: readFileSync(tls.cert), key: readFileSync(tls.key), minVersion: "TLSv1.2" }, handler);
  // Uploads, and streams that follow a program, take as long as they take; connections are counted, and idle ones end.
  server.requestTimeout = 0;
  guardHttp(server, connections, tls !== undefined);
  /** Connections that are no longer HTTP: the server waits for their ends, and does not close them. */
  const upgraded = new Set<Duplex>();
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    upgraded.add(socket);
    socket.on("error", () => {}).once("close", () => upgraded.delete(socket));
    background(
      door.upgrade(request, socket, head).catch((error: unknown) => {
        const { status, body } = door.refusal(request, error);
        const top = `HTTP/1.1 ${status} Refused\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n`;
        // After the reply to a HEAD, a body would be taken for another reply.
        socket.end(top + (request.method === "HEAD" ? "" : JSON.stringify(body)));
      }),
      "a connection to a sandbox",
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen({ backlog: BACKLOG, ...at }, resolve);
  }).catch(async (error: unknown) => {
    throw await cannotListen("The sandboxes' port", at, "HIBERNAUT_SANDBOX_LISTEN", error);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : at.port;
  return {
    url: `${tls === undefined ? "http" : "https"}://${at.host}:${port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        for (const socket of upgraded) socket.destroy();
      }),
  };
}

function refuse(
  door: Door,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
  log: ListenOptions["log"],
): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  if (failureOf(error).code === 500) log.warn({ err: error }, "a request to a sandbox failed");
  const { status, body } = door.refusal(request, error);
  // What is left of the body is not read: the next request needs another connection.
  response.writeHead(status, { "Content-Type": "application/json", ...(!request.complete && { Connection: "close" }) });
  response.end(JSON.stringify(body));
}

/** No cookie opens anything here, so that a page of any origin may try with a token of its own. */
function allowBrowsers({ headers }: IncomingMessage, response: ServerResponse): void {
  if (headers.origin === undefined) return;
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.setHeader("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  response.setHeader("Access-Control-Allow-Headers", headers["access-control-request-headers"] ?? "*");
  response.setHeader("Access-Control-Expose-Headers", "*");
  response.setHeader("Access-Control-Max-Age", "7200");
}
