/** Serves many clients over HTTP. Each sends its own API token, and acts with it alone. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { HibernautClient } from "@hibernaut/client";
import { ApiError } from "@hibernaut/client";
import { background } from "@hibernaut/lib/background";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { About, Place } from "../contract.ts";
import { MOST_BODY_BYTES, MOST_CONNECTIONS, VERIFY_TIMEOUT_MS } from "../limits.ts";
import { buildServer } from "../server.ts";
import { admit, allowedHosts } from "./admission.ts";
import { Sessions } from "./sessions.ts";

/** The only path. */
const PATH = "/mcp";

/** Where to listen, and for whom. */
export interface HttpOptions extends Omit<Place, "client">, About {
  at: { host: string; port: number };
  /** Further names at which it is reached, such as that of a proxy before it. */
  hosts?: readonly string[] | undefined;
  /** Returns a client of the platform that acts with this token. */
  clientOf(token: string): HibernautClient;
  /** Called with what failed behind a client's back. */
  onFault(error: unknown): void;
}

/** Opens the server. Rejects with Node's error if it cannot listen there. `close` ends all sessions. */
export async function serveHttp(options: HttpOptions): Promise<{ url: string; close(): Promise<void> }> {
  const { at, hosts = [], onFault } = options;
  const sessions = new Sessions<StreamableHTTPServerTransport>({ onFault });
  const allowed = allowedHosts(at.host, hosts);
  const server = createServer({ maxHeaderSize: 16_384 }, (request, response) => {
    const work = answer(request, response, { options, sessions, allowed }).catch((error: unknown) => {
      onFault(error);
      refuse(response, 500, "Something is wrong with the MCP server. What it prints says more.");
    });
    background(work, "a request of an MCP client");
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.listen({ ...at });
  await once(server, "listening"); // rejects with an error of the server
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : at.port;
  const host = at.host.includes(":") ? `[${at.host}]` : at.host;
  return {
    url: `http://${host}:${port}${PATH}`,
    close: () =>
      new Promise((resolve) => {
        sessions.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Door {
  options: HttpOptions;
  sessions: Sessions<StreamableHTTPServerTransport>;
  allowed: ReadonlySet<string>;
}

async function answer(request: IncomingMessage, response: ServerResponse, door: Door): Promise<void> {
  const admitted = admit(request.headers, door.allowed);
  if ("status" in admitted) return refuse(response, admitted.status, admitted.message);
  if ((request.url ?? "").split("?")[0] !== PATH) return refuse(response, 404, `MCP is spoken at ${PATH} only.`);
  const { token } = admitted;
  const id = request.headers["mcp-session-id"];
  if (id === undefined) return begin(request, response, token, door);
  const session = typeof id === "string" ? door.sessions.find(id, token) : undefined;
  if (session === undefined) return refuse(response, 404, "There is no such session. Begin with `initialize`.");
  // A stream that only listens keeps no session alive.
  if (request.method === "GET") return session.transport.handleRequest(request, response);
  const over = door.sessions.begin(session);
  if (over === undefined)
    return refuse(response, 429, "Too many calls of this session are under way. Wait for one to end.");
  response.once("close", over);
  await session.transport.handleRequest(request, response);
}

/** Begins a session. The platform has to know the token first: without one, nothing is kept here. */
async function begin(
  request: IncomingMessage,
  response: ServerResponse,
  token: string,
  { options, sessions }: Door,
): Promise<void> {
  if (request.method !== "POST") return refuse(response, 400, "There is no session yet. Begin with `initialize`.");
  const client = options.clientOf(token);
  try {
    await client.listApps({ signal: AbortSignal.timeout(VERIFY_TIMEOUT_MS) });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 0 || error.status >= 500)
      return refuse(
        response,
        503,
        "The platform does not answer, so that nobody can say whose token it is. Try again.",
      );
    return refuse(response, error.status === 401 ? 401 : 403, error.message);
  }
  if (!sessions.makeRoom(token)) return refuse(response, 503, "There are too many sessions. Try again later.");
  const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    maxRequestBodySize: MOST_BODY_BYTES,
    onsessioninitialized: (id) => sessions.add(id, transport, token),
    onsessionclosed: (id) => sessions.end(id),
  });
  const server = buildServer({ client, app: options.app, outputBytes: options.outputBytes }, options);
  await server.connect(transport);
  await transport.handleRequest(request, response);
  // The request was not an `initialize`, and has been refused.
  if (transport.sessionId === undefined) await server.close();
}

function refuse(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const body = JSON.stringify({ jsonrpc: "2.0", error: { code: -32_000, message }, id: null });
  // What is left of the body is not read: the next request needs another connection.
  const headers = { "content-type": "application/json", connection: "close" };
  response.writeHead(status, { ...headers, ...(status === 401 && { "www-authenticate": "Bearer" }) });
  response.end(body);
}
