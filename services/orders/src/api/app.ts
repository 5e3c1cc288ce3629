/** Builds the HTTP API from routes, error handlers, metrics and the OpenAPI document. */
import swagger from "@fastify/swagger";
import fastify from "fastify";
import { Routes } from "./allowed.ts";
import type { Api, ApiDeps } from "./deps.ts";
import { errorReplies, refuseConnection } from "./errors.ts";
import { serviceMetrics } from "./metrics.ts";
import { registerRoutes } from "./routes.ts";
import { COMPONENTS } from "./schemas.ts";
import { compileValidator } from "./validation.ts";

export type { Api, ApiDeps } from "./deps.ts";

/** Enough for a thousand rows with the longest texts, or with somewhat shorter ones in which every letter is escaped. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** A client that sends its request very slowly must not keep a connection without limit. */
const REQUEST_TIMEOUT_MS = 30_000;

/**
 * Given to the constructor, because Fastify loads compilers of its own before the setters could replace them. Their types
 * know Ajv's schemas only. The schemas give replies their types, so checking or filtering them at run time would only
 * cost time.
 */
const COMPILERS = {
  buildValidator: () => compileValidator as never,
  buildSerializer: () => () => (data: unknown) => JSON.stringify(data),
};

/**
 * Builds the API, ready to `listen` or `inject`. The caller closes the storage after the API.
 *
 * @example
 * const app = await buildApp({ storage, logger });
 * await app.listen({ host: "127.0.0.1", port: 3000 });
 */
export async function buildApp({ storage, logger }: ApiDeps): Promise<Api> {
  const routes = new Routes();
  const { sendError, sendNotFound } = errorReplies(logger, routes);
  // Fastify's logger is off: the service logs what matters itself, and a logger for each request costs time.
  const app: Api = fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    exposeHeadRoutes: true,
    schemaController: { compilersFactory: COMPILERS },
    // When the service stops, open requests finish, and idle connections end at once.
    forceCloseConnections: "idle",
    clientErrorHandler: refuseConnection,
    frameworkErrors: sendError,
  });
  app.addHook("onRoute", ({ url, method }) => routes.add(url, method));
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(sendNotFound);
  acceptOnlyJson(app);

  const metrics = serviceMetrics();
  const debugs = ["debug", "trace"].includes(logger.level);
  app.addHook("onResponse", (request, reply, done) => {
    metrics.observe(request, reply);
    const { method, url } = request;
    if (debugs) logger.debug({ method, url, status: reply.statusCode, ms: reply.elapsedTime }, "request");
    done();
  });

  await describeApi(app);
  registerRoutes(app, storage, metrics.registry);
  await app.ready();
  return app;
}

/** An empty body counts as none, whatever its content type: many clients always send that header. */
function acceptOnlyJson(app: Api): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>("application/json", { parseAs: "string" }, (request, body, answer) => {
    if (body === "") answer(null, undefined);
    else Promise.resolve(parse(request, body, answer)).catch((error: Error) => answer(error));
  });
}

/** The OpenAPI document comes from the schemas that check the requests. Call this before the routes are registered. */
async function describeApi(app: Api): Promise<void> {
  for (const [name, schema] of Object.entries(COMPONENTS)) app.addSchema({ ...schema, $id: name });
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Orders",
        version: "1.0.0",
        description: "Suppliers, their products, and orders. Prices are exact decimals in strings.",
      },
      tags: [{ name: "suppliers" }, { name: "products" }, { name: "orders" }, { name: "service" }],
    },
    refResolver: { buildLocalReference: (json, _uri, _fragment, index) => String(json.$id ?? `def-${index}`) },
  });
}
