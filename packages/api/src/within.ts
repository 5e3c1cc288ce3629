/** Requests that other parts of this process make, such as the port for Fly's clients. */
import { randomUUID } from "node:crypto";
import type { AskPlatform, PlatformRequest } from "@hibernaut/fly";
import type { FastifyRequest } from "fastify";
import type { Api } from "./deps.ts";

/** Where such a request says which it is. Nobody outside knows what to write there. */
export const WITHIN_HEADER = "hibernaut-within";

/** Those under way: when their clients have gone, and the reply, once there is one. */
const underWay = new Map<string, { client: AbortSignal; reply?: unknown }>();

/**
 * Asks the API as a client would, without a connection. Settles with its answer, also for a client that is gone by then: what it
 * waited for ends as if its connection had. The reply is the one that the route made, which nobody may change.
 */
export async function askWithin(
  api: Api,
  { signal: client, headers, ...asked }: PlatformRequest,
): ReturnType<AskPlatform> {
  const id = randomUUID();
  const request: { client: AbortSignal; reply?: unknown } = { client };
  underWay.set(id, request);
  try {
    const { statusCode, payload } = await api.inject({ ...asked, headers: { ...headers, [WITHIN_HEADER]: id } });
    return { statusCode, reply: "reply" in request ? request.reply : JSON.parse(payload || "{}") };
  } finally {
    underWay.delete(id);
  }
}

/** When the client of such a request is gone. Undefined for one that came over a connection. */
export function clientWithin(request: Pick<FastifyRequest, "headers">): AbortSignal | undefined {
  return requestWithin(request)?.client;
}

/** Hands such a request its reply as it is: to write and read a list of thousands takes longer than to make it. */
export function handReplies(app: Api): void {
  app.addHook("preSerialization", async (request, _reply, payload) => {
    const within = requestWithin(request);
    if (within === undefined) return payload;
    within.reply = payload;
    return {};
  });
}

function requestWithin({ headers }: Pick<FastifyRequest, "headers">) {
  const id = headers[WITHIN_HEADER];
  return typeof id === "string" ? underWay.get(id) : undefined;
}
