/** Sends a client's WebSocket on to another host. */
import { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { PeerClient } from "@hibernaut/cluster";
import type { FastifyReply, FastifyRequest } from "fastify";
import { clientGone } from "../client-gone.ts";
import type { Api } from "../deps.ts";
import { HOST_HEADER, sentOn } from "./headers.ts";
import { pass } from "./send-on.ts";

/** What came behind the head of a request to upgrade. */
type UpgradeHeads = WeakMap<object, Buffer>;

/** Keeps what clients send at once behind their requests to upgrade. */
export function keepUpgradeHeads(app: Api): UpgradeHeads {
  const heads: UpgradeHeads = new WeakMap();
  app.server.prependListener("upgrade", (request: IncomingMessage, _socket: Duplex, head: Buffer) =>
    heads.set(request, head),
  );
  return heads;
}

/** Connects a client's WebSocket with another host. A refusal is answered like any other reply. */
export async function sendOnUpgrade(
  request: FastifyRequest,
  reply: FastifyReply,
  { client, host, heads }: { client: PeerClient; host: string; heads: UpgradeHeads },
): Promise<FastifyReply> {
  request.sentOnTo = host;
  const headers = {
    ...sentOn(request),
    connection: "upgrade",
    upgrade: request.headers.upgrade ?? "websocket",
  };
  const gone = clientGone(reply);
  const answer = await client.upgrade(host, { method: request.method, path: request.url, headers, signal: gone });
  if (answer instanceof IncomingMessage) return pass(reply, answer, host);
  const { response, socket: upstream, head } = answer;
  const { socket } = request.raw;
  reply.hijack();
  const lines = [`HTTP/1.1 101 ${response.statusMessage ?? "Switching Protocols"}`, `${HOST_HEADER}: ${host}`];
  for (let at = 0; at < response.rawHeaders.length; at += 2)
    lines.push(`${response.rawHeaders[at]}: ${response.rawHeaders[at + 1]}`);
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  if (head.length > 0) socket.write(head);
  const first = heads.get(request.raw);
  if (first !== undefined && first.length > 0) upstream.write(first);
  socket.setTimeout(0);
  join(socket, upstream);
  join(upstream, socket);
  return reply;
}

/** Passes bytes on. The end of one side, of whatever kind, is that of the other. */
function join(from: Duplex, to: Duplex): void {
  from.pipe(to);
  from.on("error", () => to.destroy());
  from.on("close", () => to.destroy());
}
