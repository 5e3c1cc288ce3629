/** What every route says of itself: what it is for, who may use it, and the shapes of its requests and replies. */
import type { FastifyContextConfig, FastifyRequest } from "fastify";
import type { TSchema } from "typebox";
import type { Api } from "./deps.ts";
import { NoQuery, replies } from "./schemas.ts";

/** The schemas of a route. Without one for queries, any query is refused; without one for bodies, a body is not looked at. */
interface Shapes {
  params?: TSchema;
  querystring?: TSchema;
  body?: TSchema;
  /** In place of `body`: a request without one is the same as one with `{}`. */
  optionalBody?: TSchema;
  /** The reply with the status 200. */
  reply?: TSchema;
  /** The reply with the status 201. */
  created?: TSchema;
  /** The replies of a route with another one than these. */
  response?: object;
  /** What the summary leaves open, for the OpenAPI document. */
  description?: string;
  consumes?: string[];
  security?: [];
}

type Described<S extends Shapes> = Omit<S, "body" | "optionalBody" | "reply" | "created"> & {
  querystring: S extends { querystring: infer Query } ? Query : typeof NoQuery;
  body: S extends { body: infer Body } | { optionalBody: infer Body } ? Body : undefined;
  response: S extends { reply: infer Reply extends TSchema }
    ? ReturnType<typeof replies<200, Reply>>
    : S extends { created: infer Reply extends TSchema }
      ? ReturnType<typeof replies<201, Reply>>
      : S["response"];
};

/**
 * Returns what makes the options of routes that are listed under a tag in the OpenAPI document.
 *
 * @example
 * const route = routesOf("apps");
 * app.get(path, route("Show an app", { scope: "read" }, { params: AppParams, reply: AppReply }), async (request) => ...);
 */
export function routesOf(tag: string) {
  return function route<S extends Shapes>(summary: string, config: FastifyContextConfig, shapes: S) {
    const { optionalBody, reply, created, ...others } = shapes;
    const schema = {
      ...{ tags: [tag], summary, querystring: NoQuery },
      ...others,
      ...(optionalBody !== undefined && { body: optionalBody }),
      ...(reply !== undefined && { response: replies(200, reply) }),
      ...(created !== undefined && { response: replies(201, created) }),
    };
    return {
      config,
      schema: schema as unknown as Described<S>,
      ...(optionalBody !== undefined && { preValidation: allowNoBody }),
    };
  };
}

async function allowNoBody(request: FastifyRequest): Promise<void> {
  if (request.body === undefined) request.body = {};
}

/** Makes the registration of a route fail that does not say who may use it. */
export function requireScopes(app: Api): void {
  app.addHook("onRoute", ({ method, url, config }) => {
    const said = [config?.inside === "only", config?.open === true, config?.scope !== undefined];
    if (said.filter(Boolean).length !== 1)
      throw new Error(
        `${String(method)} ${url}: say in \`config\` which \`scope\` it needs, or \`inside: "only"\`, or \`open\`.`,
      );
  });
}
