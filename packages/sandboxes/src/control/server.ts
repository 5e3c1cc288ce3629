/** The control API: one key opens the sandboxes of one app. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Grant } from "@hibernaut/domain/scopes";
import { hasScope } from "@hibernaut/domain/scopes";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { SandboxNeeds } from "../contract.ts";
import { failureOf, Refusal } from "../failure.ts";
import { buildRoutes } from "./builds.ts";
import type { ControlDeps } from "./deps.ts";
import { logRoutes } from "./logs.ts";
import { metricRoutes } from "./metrics.ts";
import { sandboxRoutes } from "./sandboxes.ts";
import { tagRoutes } from "./tags.ts";
import { templateBuildRoutes } from "./template-builds.ts";
import { templateRoutes } from "./templates.ts";
import { uploadRoutes } from "./uploads.ts";
import { volumeContentRoutes } from "./volume-content.ts";
import { volumeRoutes } from "./volumes.ts";

/** The largest request, in bytes: labels and variables of a sandbox fit several times. */
const MOST_BODY_BYTES = 1024 * 1024;
/** The longest part of a path that a route takes, in characters: any that Node accepts, so that the schemas say what is too long. */
const MOST_PARAM = 16_384;

/** Returns what answers requests to the control API. */
export async function buildControl(deps: ControlDeps): Promise<{
  handle(request: IncomingMessage, response: ServerResponse): void;
  close(): Promise<void>;
}> {
  let handle: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  const refuse = (error: unknown, _request: unknown, reply: FastifyReply) => {
    const failure = failureOf(error);
    if (failure.code >= 500) deps.needs.log.warn({ err: error }, "a request about sandboxes failed");
    return reply.code(failure.code).send(failure);
  };
  const app = Fastify({
    bodyLimit: MOST_BODY_BYTES,
    routerOptions: { maxParamLength: MOST_PARAM },
    // Those that come before there is a route, such as for a path that cannot be decoded.
    frameworkErrors: (error, request, reply) => void refuse(error, request, reply),
    ajv: { customOptions: { coerceTypes: true, removeAdditional: false } },
    // The listener is one for control, insides and ports.
    serverFactory: (handler) => {
      handle = handler;
      return unused();
    },
  });
  app.decorateRequest("sandboxApp", "");
  app.setErrorHandler(refuse);
  app.setNotFoundHandler((request, reply) => {
    const message = `${request.method} ${request.url.split("?")[0]} means nothing on a server of your own.`;
    return reply.code(501).send({ code: 501, message });
  });
  acceptEmptyBodies(app);
  app.get("/health", (_request, reply) => reply.code(204).send());
  app.register(async (authorized) => {
    authorized.addHook("onRequest", async (request) => {
      request.sandboxApp = appOf(request, deps.needs);
    });
    sandboxRoutes(authorized, deps);
    templateRoutes(authorized, deps);
    metricRoutes(authorized, deps);
    buildRoutes(authorized, deps);
    tagRoutes(authorized, deps);
    templateBuildRoutes(authorized, deps);
    logRoutes(authorized, deps);
    volumeRoutes(authorized, deps);
  });
  app.register(async (linked) => uploadRoutes(linked, deps));
  app.register(async (opened) => volumeContentRoutes(opened, deps));
  await app.ready();
  return { handle: (request, response) => handle?.(request, response), close: () => app.close() };
}

/** Clients send `Content-Type: application/json` without a body. */
function acceptEmptyBodies(app: FastifyInstance): void {
  app.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) => {
    if (body === "") return done(null, {});
    try {
      done(null, JSON.parse(String(body)));
    } catch {
      done(new Refusal(400, "The body is not JSON."));
    }
  });
}

function appOf({ headers }: FastifyRequest, { holderOf }: SandboxNeeds): string {
  const { authorization } = headers;
  const key = headers["x-api-key"] ?? (authorization?.startsWith("Bearer ") ? authorization.slice(7) : undefined);
  if (typeof key !== "string")
    throw new Refusal(401, "A key is missing. Set E2B_API_KEY to one that `hibernaut tokens create --e2b` made.");
  const holder = holderOf(key);
  if (holder === undefined)
    throw new Refusal(401, "The key is unknown, or has ended. `hibernaut tokens create --e2b` makes one.");
  requireRights(holder.grant);
  return holder.app;
}

function requireRights({ scopes }: Grant): void {
  if (hasScope(scopes, "deploy") && hasScope(scopes, "exec")) return;
  throw new Refusal(403, "The key may not make sandboxes: it needs the scopes `deploy` and `exec`.");
}

/** Fastify wants a server to listen with, and never does. */
function unused() {
  const { createServer } = process.getBuiltinModule("node:http");
  return createServer();
}
