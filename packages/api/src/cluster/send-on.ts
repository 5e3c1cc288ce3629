/** Sends a client's request on to another host, and the reply back, as they come. */
import type { IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import type { PeerClient } from "@hibernaut/cluster";
import { HibernautError } from "@hibernaut/domain/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { clientGone } from "../client-gone.ts";
import { read as readText } from "./ask-hosts.ts";
import { replied, sentOn } from "./headers.ts";

/** A body up to this size is kept until the reply, so that it can be sent again. Configurations are smaller. */
const MAX_KEPT_BYTES = 256 * 1024;

interface SendOnOptions {
  client: PeerClient;
  host: string;
  /** The host that has it by now, after another host said that it has moved. Undefined when nobody knows a better one. */
  again(): Promise<string | undefined>;
  /** The body, if it was read already. */
  body?: Buffer;
  /** Returns what is sent in the place of a small body. */
  adapt?: (body: Buffer) => Promise<Buffer>;
}

/** Answers a request with what another host says. */
export async function sendOn(
  request: FastifyRequest,
  reply: FastifyReply,
  { client, host, again, body: given, adapt = async (body) => body }: SendOnOptions,
): Promise<FastifyReply> {
  const read = given ?? (await keptBody(request));
  const kept = read && (await adapt(read));
  const { "content-type": type, "content-length": length } = request.headers;
  const headers = {
    ...sentOn(request),
    ...(type !== undefined && { "content-type": type }),
    ...(kept === undefined && length !== undefined && { "content-length": length }),
  };
  const signal = clientGone(reply);
  const send = (to: string) => {
    request.sentOnTo = to;
    return client.send(to, {
      method: request.method,
      path: request.url,
      headers,
      body: kept ?? request.raw,
      signal,
    });
  };
  const response = await send(host);
  const moved = await movedReply(response);
  if (moved === undefined) return pass(reply, response, host);
  const next = kept === undefined ? undefined : await again();
  if (next === undefined) throw moved;
  return pass(reply, await send(next), next);
}

/** Answers with a reply of another host, as it comes. */
export function pass(reply: FastifyReply, response: IncomingMessage, host: string): FastifyReply {
  return reply
    .code(response.statusCode ?? 502)
    .headers(replied(response.headers, host))
    .send(response);
}

/** The whole body of a request without one, or with a small one. Undefined for one that has to be passed on as it comes. */
async function keptBody({ raw }: FastifyRequest): Promise<Buffer | undefined> {
  const length = raw.headers["content-length"];
  if (raw.headers["transfer-encoding"] !== undefined) return undefined;
  if (length === undefined || length === "0") return Buffer.alloc(0);
  if (Number(length) > MAX_KEPT_BYTES) return undefined;
  return buffer(raw);
}

/** What the host said if the machine is not there any more. */
async function movedReply(response: IncomingMessage): Promise<HibernautError | undefined> {
  if (response.statusCode !== 409 || response.headers[MOVED_HEADER] === undefined) return undefined;
  const { message, details } = JSON.parse(await readText(response)) as {
    message: string;
    details: Record<string, unknown>;
  };
  return new HibernautError("moved", message, details);
}

/** Marks the reply of a host that does not have the machine any more: others may have the same status. */
export const MOVED_HEADER = "hibernaut-moved";
