/** Headers for browsers: what they may do with replies of the API, and which pages may ask for any. */
import { LEASE_NONCE_HEADER } from "@hibernaut/domain/lease";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Api } from "./deps.ts";

/** Replies are data, for the one who asked. They may contain tokens, so nothing keeps them. */
const HEADERS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
} as const;

/** How long a browser remembers what a preflight answered, in seconds. */
const PREFLIGHT_S = 600;

/** Adds the headers to every reply, and lets pages of these origins, and no others, use the API. */
export function secureEdges(app: Api, origins: readonly string[] = []): void {
  app.addHook("onRequest", async (_request, reply) => void reply.headers(HEADERS));
  if (origins.length === 0) return;
  const allowed = new Set(origins);
  app.addHook("onRequest", async (request, reply) => {
    const { origin } = request.headers;
    reply.header("vary", "origin");
    if (origin === undefined || !allowed.has(origin)) return;
    reply.header("access-control-allow-origin", origin);
    reply.header("access-control-expose-headers", "x-request-id, retry-after");
  });
  // Preflights have no token. What they allow is only to ask: the request that follows needs one.
  app.options("/*", { schema: { hide: true } }, preflight);

  function preflight({ headers }: FastifyRequest, reply: FastifyReply): FastifyReply {
    if (headers.origin !== undefined && allowed.has(headers.origin))
      reply.headers({
        "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
        "access-control-allow-headers": `authorization, content-type, x-request-id, ${LEASE_NONCE_HEADER}`,
        "access-control-max-age": String(PREFLIGHT_S),
      });
    return reply.code(204).send();
  }
}
