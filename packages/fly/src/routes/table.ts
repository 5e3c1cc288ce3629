/** How a route is registered, and what every route has. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Static, TSchema } from "typebox";
import { type Ask, askFor, path } from "../ask.ts";
import { removeNulls } from "../config/nulls.ts";
import type { FlyNeeds } from "../contract.ts";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** A request as a route gets it. */
export interface Call<B = unknown> {
  ask: Ask;
  /** A name of the path. */
  of(name: string): string;
  query: Record<string, unknown>;
  body: B;
}

/** The path of a machine, and its place in the platform's API. */
export const MACHINE = "/apps/:app_name/machines/:machine_id";
export const machineAt = ({ of }: Pick<Call, "of">) => path`/v1/apps/${of("app_name")}/machines/${of("machine_id")}`;

/** Registers routes that answer with what they return. */
export type Routes = <B extends TSchema>(
  method: Method,
  url: string,
  options: { status?: number; body?: B; keepsNulls?: boolean },
  answer: (call: Call<Static<B>>) => Promise<unknown>,
) => void;

/** The routes of Fly's API, below `/v1` unless it says otherwise. */
export function routesOn(app: FastifyInstance, needs: Pick<FlyNeeds, "ask">, below = "/v1"): Routes {
  return (method, url, { status = 200, body, keepsNulls = false }, answer) => {
    app.route({
      method,
      url: `${below}${url}`,
      schema: body === undefined ? {} : { body },
      // A client that sends nothing sends an empty object. Null is what is not set, except where it means "delete".
      preValidation: async (request: FastifyRequest) => {
        if (body === undefined) return;
        const sent = request.body ?? {};
        request.body = keepsNulls ? sent : removeNulls(sent);
      },
      handler: async (request, reply) => {
        const params = request.params as Record<string, string>;
        const call = {
          ask: askFor(request, reply, needs.ask),
          of: (name: string) => params[name] ?? "",
          query: request.query as Record<string, unknown>,
          body: request.body as never,
        };
        const content = await answer(call);
        return reply.code(status).send(content);
      },
    });
  };
}
