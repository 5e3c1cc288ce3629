/** The HTTP API: puts routes, errors, metrics and the document together. */
import fastify from "fastify";
import type { Api, ApiDeps } from "./deps.ts";
import { errorReplies, refuseConnection } from "./errors.ts";
import { serviceMetrics } from "./metrics.ts";
import { describeApi } from "./openapi.ts";
import { orderRoutes } from "./routes/orders.ts";
import { productRoutes } from "./routes/products.ts";
import { serviceRoutes } from "./routes/service.ts";
import { supplierRoutes } from "./routes/suppliers.ts";
import { compileValidator } from "./validation.ts";

export type { Api, ApiDeps } from "./deps.ts";

/** A thousand rows of the longest texts; or of somewhat shorter ones, with every letter escaped. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** A client that trickles its request must not hold a connection for ever. */
const REQUEST_TIMEOUT_MS = 30_000;

/**
 * Builds the API, ready to `listen` or `inject`. Whoever opened the storage closes it, after the API.
 *
 * @example
 * const app = await buildApp({ storage, logger });
 * await app.listen({ host: "127.0.0.1", port: 3000 });
 */
export async function buildApp({ storage, logger }: ApiDeps): Promise<Api> {
  const { sendError, sendNotFound } = errorReplies(logger);
  // Without a logger of its own: what there is to say, the service says itself, and a logger for each request costs.
  const app: Api = fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    exposeHeadRoutes: false,
    // Open requests finish when the service stops; connections without one end at once.
    forceCloseConnections: "idle",
    clientErrorHandler: refuseConnection,
    frameworkErrors: sendError,
  });
  app.setValidatorCompiler(compileValidator);
  // Replies are typed by their schemas; checking or filtering them again at run time would only cost.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
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
  supplierRoutes(app, storage);
  productRoutes(app, storage);
  orderRoutes(app, storage);
  serviceRoutes(app, storage, metrics.registry);
  await app.ready();
  return app;
}

/** An empty body counts as none, whatever its content type says: many clients always send one. */
function acceptOnlyJson(app: Api): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") done(null, undefined);
    else void parse(request, body, done);
  });
}
