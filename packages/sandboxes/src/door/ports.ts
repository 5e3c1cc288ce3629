/** Requests to ports of sandboxes: passed on to whatever listens there, over the channel to the machine's agent. */
import { request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { GuestCommand } from "@hibernaut/guest";
import { background } from "@hibernaut/lib/background";
import { Refusal } from "../failure.ts";

/** Headers of the connection, not of the request. */
const HOP_BY_HOP = ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"];
/** What was meant for the way here, and is not for the program. */
const OURS = ["e2b-sandbox-id", "e2b-sandbox-port", "e2b-traffic-access-token"];
/** How `connect` in the agent ends when nothing listens. */
const REFUSED = 2;

/** The first status there is. Parsers take three digits for one, whatever they are. */
const LEAST_STATUS = 100;

/** How long the agent has to say why a connection ended, in milliseconds: it is on its way by then. */
const LAST_WORD_MS = 1000;

interface PortRequest {
  port: number;
  /** Opens a connection to the port. */
  connect(): GuestCommand;
  /** The `Host` that the program sees. Undefined: as it was sent. */
  host: string | undefined;
}

/** Passes one request on, and its response back. Rejects with a {@link Refusal} if nothing listens. */
export async function passOn(
  request: IncomingMessage,
  response: ServerResponse,
  { port, connect, host }: PortRequest,
): Promise<void> {
  const connection = connect();
  const upstream = httpRequest({
    createConnection: () => duplexOf(connection),
    method: request.method,
    path: request.url,
    headers: {
      ...headersFor(request, host),
      // Node frames no body of a GET or DELETE by itself: it would follow bare, as another request.
      ...(request.headers["transfer-encoding"] !== undefined && { "transfer-encoding": "chunked" }),
    },
    setHost: false,
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    upstream.once("response", resolve).once("error", reject);
  });
  response.on("close", () => upstream.destroy());
  background(
    pipeline(request, upstream).catch(() => {}),
    "a request to a sandbox's port",
  );
  const answer = await answered.catch(async () => {
    upstream.destroy();
    // How the connection ended says why.
    throw closed(port, await codeOf(connection));
  });
  const { statusCode = 0 } = answer;
  if (statusCode < LEAST_STATUS) {
    upstream.destroy();
    throw new Refusal(
      502,
      `What listens at port ${port} answered with status ${statusCode}, which HTTP does not have.`,
    );
  }
  const headers = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !HOP_BY_HOP.includes(name)));
  response.writeHead(statusCode, headers);
  await pipeline(answer, response).catch(() => response.destroy());
}

/** Passes a connection on that becomes something else than HTTP, such as a WebSocket. */
export function passUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { connect, host }: PortRequest,
): void {
  const upstream = duplexOf(connect());
  const lines = Object.entries(headersFor(request, host, { upgrade: true })).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}`),
  );
  upstream.write(`${request.method} ${request.url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
  if (head.length > 0) upstream.write(head);
  const end = () => {
    socket.destroy();
    upstream.destroy();
  };
  socket.pipe(upstream).pipe(socket);
  socket.on("error", end).on("close", end);
  upstream.on("error", end).on("close", end);
}

function headersFor(
  request: IncomingMessage,
  host: string | undefined,
  { upgrade = false } = {},
): Record<string, string | string[]> {
  const kept = Object.entries(request.headersDistinct).filter(([name]) => {
    if (OURS.includes(name) || name === "host") return false;
    return upgrade || !HOP_BY_HOP.includes(name);
  });
  return {
    host: host ?? request.headers.host ?? "localhost",
    ...Object.fromEntries(kept.map(([name, values]) => [name, values ?? []])),
  };
}

/** A connection as a stream in both directions. */
function duplexOf(connection: GuestCommand): Duplex {
  const duplex = Duplex.from({ readable: connection.stdout, writable: connection.stdin });
  // A connection that was refused has a last word, see codeOf().
  duplex.on("close", () => setTimeout(() => connection.kill(), LAST_WORD_MS).unref()).on("error", () => {});
  connection.stderr.resume();
  // What `http` expects of a socket.
  return Object.assign(duplex, {
    setTimeout: () => duplex,
    setNoDelay: () => duplex,
    setKeepAlive: () => duplex,
    ref: () => duplex,
    unref: () => duplex,
  });
}

/** The exit code of a connection that has ended, or is given up now. */
async function codeOf(connection: GuestCommand): Promise<number> {
  const timer = setTimeout(() => connection.kill(), LAST_WORD_MS);
  try {
    return (await connection.exit).code;
  } catch {
    return 0;
  } finally {
    clearTimeout(timer);
  }
}

function closed(port: number, code: number): Refusal {
  return new Refusal(
    502,
    code === REFUSED ? `The sandbox is running but port ${port} is not open` : "The connection was lost",
  );
}
