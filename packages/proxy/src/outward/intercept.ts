/**
 * A machine's TLS connection to a name that headers are added for: it ends here, and each of its requests continues to the name
 * over a connection of ours, with what is added. The guest never sees that, unless the server says it back.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent } from "node:https";
import type { Socket } from "node:net";
import { type SecureContext, TLSSocket } from "node:tls";
import { callbackify } from "node:util";
import { background } from "@hibernaut/lib/background";
import { type Credentials, requestRefusal } from "./credentials.ts";
import { passRequest, passUpgrade } from "./pass.ts";
import { HANDSHAKE_MS, proven } from "./proven.ts";

/** How long a connection of either side may be silent, in milliseconds: a model may think for minutes before it answers. */
const IDLE_MS = 600_000;
/** Requests that a client sends before the one before them is answered. Hardly any client sends one. */
const MOST_WAITING = 32;
/** A request's head, in bytes: as Node's own clients and servers have it. */
const MOST_HEAD_BYTES = 16_384;

interface InterceptOptions {
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

/** Serves the connection. It ends by itself, and takes its connections to the name with it. */
export function intercept({ client, name, context, credentials, reach, authorities, signal }: InterceptOptions): void {
  const socket = new TLSSocket(client, { isServer: true, secureContext: context, ALPNProtocols: ["http/1.1"] });
  const late = setTimeout(() => client.destroy(), HANDSHAKE_MS);
  socket.once("secure", () => clearTimeout(late));
  socket.on("error", () => client.destroy());
  const left = new AbortController();
  const close = () => client.destroy();
  signal.addEventListener("abort", close, { once: true });
  client.once("close", () => {
    clearTimeout(late);
    signal.removeEventListener("abort", close);
    left.abort(new Error("the guest's connection is over"));
    server.close();
  });

  const made = async () => {
    const upstream = await proven({ name, reach, authorities, signal: left.signal });
    // As if the guest were connected to the server: it is told at once, and does not use a connection that is over.
    return upstream.once("close", () => socket.end());
  };
  const agentFor = (options: { keepAlive: boolean }) =>
    Object.assign(new Agent({ ...options, maxSockets: 1, timeout: IDLE_MS }), { createConnection: callbackify(made) });
  // An upgrade has a connection to itself: whatever the server makes of it, no request comes after it.
  const [kept, single] = [agentFor({ keepAlive: true }), agentFor({ keepAlive: false })];
  left.signal.addEventListener("abort", () => [kept, single].map((agent) => agent.destroy()), { once: true });

  // One at a time, so that each begins where the one before it has ended.
  let waiting = 0;
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>) => {
    waiting += 1;
    if (waiting > MOST_WAITING) {
      socket.destroy();
      return;
    }
    turn = turn
      .then(() => (client.destroyed ? undefined : work()))
      .finally(() => (waiting -= 1))
      .catch((error: unknown) => {
        socket.destroy();
        throw error;
      });
    background(turn, "a request that headers are added to");
  };
  const passing = { name, credentials, signal: left.signal, idleMs: IDLE_MS };
  const options = { maxHeaderSize: MOST_HEAD_BYTES, requestTimeout: 0, keepAliveTimeout: IDLE_MS };
  const server = createServer(options, (asked: IncomingMessage, reply: ServerResponse) =>
    inTurn(() => passRequest(asked, reply, requestRefusal(asked, name), { ...passing, agent: kept })),
  );
  server.setTimeout(IDLE_MS, (silent) => silent.destroy());
  server.on("upgrade", (asked: IncomingMessage, guest: Socket, first: Buffer) => {
    guest.on("error", () => guest.destroy());
    inTurn(() => passUpgrade(asked, { guest, first }, requestRefusal(asked, name), { ...passing, agent: single }));
  });
  server.emit("connection", socket);
}
