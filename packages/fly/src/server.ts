/** Fly's API: routes that ask the platform's own, with the token of the client. */
import { randomUUID } from "node:crypto";
import type { SecureContextOptions, TlsOptions } from "node:tls";
import { type RequestPlaces, TOO_MANY_REQUESTS } from "@hibernaut/connections";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { admit } from "./admit.ts";
import { tokenOf } from "./ask.ts";
import type { FlyNeeds } from "./contract.ts";
import { failureOf, Refusal, waitOf } from "./failure.ts";
import { graphqlRoute } from "./graphql/route.ts";
import { allRoutes } from "./routes/all.ts";
import { SITE, siteRoutes } from "./routes/site.ts";
import { routesOn } from "./routes/table.ts";

/** The largest body, in bytes: files may take 350 KiB of a configuration, and the rest is small. */
const MOST_BODY_BYTES = 640 * 1024;
/** The longest name in a path, in characters: the platform says what is too long. */
const MOST_PARAM = 4096;
/** How long a request may take to arrive, in milliseconds: a MiB takes a second even on a slow line. */
const ARRIVAL_MS = 30_000;

/** Replies have what is nobody's business but the client's, and are JSON only. */
const FOR_BROWSERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" } as const;

/** Returns the server, ready to listen. */
export async function buildFly(
  needs: FlyNeeds & { places: RequestPlaces },
  tls?: SecureContextOptions & TlsOptions,
): Promise<FastifyInstance> {
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const { status, body } = failureOf(error);
    if (status === 500) needs.log.warn({ err: error }, "a request to Fly's API failed");
    void reply.header("fly-request-id", request.id);
    if (status === 429) void reply.header("retry-after", waitOf(error));
    return reply.code(status).send(body);
  };
  const options = {
    bodyLimit: MOST_BODY_BYTES,
    requestTimeout: ARRIVAL_MS,
    routerOptions: { maxParamLength: MOST_PARAM },
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    genReqId: () => randomUUID(),
    frameworkErrors: (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
      void refuse(error, request, reply),
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allErrors: false } },
  };
  const app = (tls === undefined
    ? Fastify(options)
    : Fastify({ ...options, https: tls })) as unknown as FastifyInstance;
  app.setErrorHandler(refuse);
  app.setNotFoundHandler((request, reply) => {
    const error = `There is no ${request.method} ${request.url.split("?")[0]?.slice(0, 200)}. docs/fly-routes.md lists what there is.`;
    return reply.code(404).header("fly-request-id", request.id).send({ error, status: "unknown" });
  });
  app.addHook(
    "onRequest",
    async (request, reply) => void reply.headers({ ...FOR_BROWSERS, "fly-request-id": request.id }),
  );
  app.addHook("onRequest", admit(needs));
  // Whose request has come this far has a token: nobody without one takes the places of those.
  app.addHook("onRequest", async ({ raw, headers }, reply) => {
    if (!needs.places.take(raw, reply.raw, tokenOf(headers.authorization)))
      throw new Refusal(429, `resource_exhausted: ${TOO_MANY_REQUESTS}`);
  });
  acceptOnlyJson(app);
  allRoutes(routesOn(app, needs));
  siteRoutes(routesOn(app, needs, SITE));
  graphqlRoute(app, needs);
  await app.ready();
  return app;
}

/** An empty body counts as none, whatever its content type says, and a body is JSON, whatever it says. */
function acceptOnlyJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>("*", { parseAs: "string" }, (request, body, answer) => {
    if (body === "") answer(null, undefined);
    else Promise.resolve(parse(request, body, answer)).catch((error: Error) => answer(error));
  });
}
