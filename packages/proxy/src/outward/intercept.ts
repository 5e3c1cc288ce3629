/**
 * A machine's TLS connection to a name that gets credentials: it ends here, and each of its requests continues to the name over
 * a connection of ours, with what is added. The guest never sees that, unless the server says it back.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent, request } from "node:https";
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { connect as connectTls, type SecureContext, TLSSocket } from "node:tls";
import { callbackify } from "node:util";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import { type Credentials, headersBack, headersOut, requestRefusal } from "./credentials.ts";

/** How long a handshake may take on either side, in milliseconds. */
const HANDSHAKE_MS = 10_000;
/** How long a connection of either side may be silent, in milliseconds: a model may think for minutes before it answers. */
const IDLE_MS = 600_000;
/** Requests that a client sends before the one before them is answered. Hardly any client sends one. */
const MOST_WAITING = 32;
/** A request's head, in bytes: as Node's own clients and servers have it. */
const MOST_HEAD_BYTES = 16_384;

export interface InterceptOptions {
  /** As a guest's connection came. Nothing of it has been taken. */
  client: Socket;
  name: string;
  /** Certificate and key for the name. */
  context: SecureContext;
  credentials: Credentials;
  /** Connects to the name. */
  reach(signal: AbortSignal): Promise<Socket>;
  /** PEM of authorities that the name's server may have its certificate from. Default: those that Node trusts. */
  authorities?: readonly string[];
  /** Ends everything. */
  signal: AbortSignal;
}

/** Serves the connection. It ends by itself. */
export function intercept({ client, name, context, credentials, reach, authorities, signal }: InterceptOptions): void {
  const socket = new TLSSocket(client, { isServer: true, secureContext: context, ALPNProtocols: ["http/1.1"] });
  const late = setTimeout(() => client.destroy(), HANDSHAKE_MS);
  socket.once("secure", () => clearTimeout(late));
  socket.on("error", () => client.destroy());
  const ended = new AbortController();
  // One at a time goes through, as on the guest's connection.
  const agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: IDLE_MS });
  const made = async () => {
    const upstream = await connected(name, () => reach(AbortSignal.any([signal, ended.signal])), authorities);
    // As if the guest were connected to the server: it is told at once, and does not use a connection that is over.
    return upstream.once("close", () => socket.end());
  };
  Object.assign(agent, { createConnection: callbackify(made) });
  const options = { maxHeaderSize: MOST_HEAD_BYTES, requestTimeout: 0, keepAliveTimeout: IDLE_MS };
  let waiting = 0;
  let turn: Promise<void> = Promise.resolve();
  const server = createServer(options, (asked, reply) => {
    waiting += 1;
    if (waiting > MOST_WAITING) {
      socket.destroy();
      return;
    }
    turn = turn.then(() => pass(asked, reply)).finally(() => (waiting -= 1));
    background(turn, "a request with credentials");
  });
  client.once("close", () => {
    clearTimeout(late);
    ended.abort(new Error("the guest's connection is over"));
    agent.destroy();
    server.close();
  });
  const close = () => client.destroy();
  signal.addEventListener("abort", close, { once: true });
  client.once("close", () => signal.removeEventListener("abort", close));
  server.setTimeout(IDLE_MS, (silent) => silent.destroy());

  const outgoing = (asked: IncomingMessage, upgrades: boolean) =>
    request({
      ...{ agent, host: name, port: 443, method: asked.method, path: asked.url, signal: ended.signal },
      headers: headersOut(asked, credentials, { upgrades }),
      setDefaultHeaders: false,
    });

  const pass = async (asked: IncomingMessage, reply: ServerResponse) => {
    const refusal = requestRefusal(asked, name);
    if (refusal !== undefined) return refuse(reply, refusal.status, refusal.message);
    if (client.destroyed) return;
    const sent = outgoing(asked, false);
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      sent.once("response", resolve).on("error", reject);
    });
    // The answer may come before the request is over, and may end it.
    const upload = pipeline(asked, sent).catch(() => {});
    try {
      const answer = await answered;
      reply.writeHead(answer.statusCode ?? 502, answer.statusMessage, headersBack(answer));
      await pipeline(answer, reply);
    } catch (error) {
      // Whether the server got the request is for the guest to judge, as on a connection of its own.
      if (reply.headersSent || client.destroyed || sent.reusedSocket) socket.destroy();
      else refuse(reply, 502, `${name} was not reached: ${messageOf(error)}.`);
    }
    await upload;
  };

  server.on("upgrade", (asked: IncomingMessage, guest: Socket, first: Buffer) => {
    guest.on("error", () => guest.destroy());
    const refusal = requestRefusal(asked, name);
    if (refusal !== undefined) {
      guest.end(`HTTP/1.1 ${refusal.status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
      return;
    }
    const sent = outgoing(asked, true);
    const fail = () => guest.destroy();
    sent.on("error", fail);
    sent.once("response", (answer) => {
      guest.write(headOf(answer));
      background(pipeline(answer, guest).catch(fail), "a WebSocket that was refused");
    });
    sent.once("upgrade", (answer, upstream: Socket, early: Buffer) => {
      guest.write(headOf(answer));
      if (early.length > 0) upstream.unshift(early);
      if (first.length > 0) guest.unshift(first);
      upstream.on("error", () => upstream.destroy()).setTimeout(IDLE_MS, () => upstream.destroy());
      guest.setTimeout(IDLE_MS, () => guest.destroy());
      for (const [from, to] of [
        [guest, upstream],
        [upstream, guest],
      ] as const)
        background(pipeline(from, to).catch(fail), "a WebSocket with credentials");
    });
    sent.end();
  });
  server.emit("connection", socket);
}

/** A TLS connection to the name, which has proved that it is the name. */
async function connected(
  name: string,
  reach: () => Promise<Socket>,
  authorities: readonly string[] | undefined,
): Promise<TLSSocket> {
  const raw = await reach();
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      ...{ socket: raw, servername: name, ALPNProtocols: ["http/1.1"] },
      ...(authorities !== undefined && { ca: [...authorities] }),
    });
    const late = setTimeout(() => socket.destroy(new Error("its TLS handshake took too long")), HANDSHAKE_MS);
    socket.once("secureConnect", () => {
      clearTimeout(late);
      resolve(socket);
    });
    socket.on("error", (error: Error) => {
      clearTimeout(late);
      raw.destroy();
      reject(error);
    });
  });
}

function refuse(reply: ServerResponse, status: number, message: string): void {
  reply.writeHead(status, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" });
  reply.end(`${message}\n`);
}

/** An answer that is not read as one, as it is sent. */
function headOf(answer: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}`];
  for (let at = 0; at < answer.rawHeaders.length; at += 2)
    lines.push(`${answer.rawHeaders[at]}: ${answer.rawHeaders[at + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}
