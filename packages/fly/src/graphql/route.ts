/** Fly's GraphQL, as far as its clients need it for apps and machines. It is read only: the Machines API makes changes. */
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { askFor } from "../ask.ts";
import type { FlyNeeds } from "../contract.ts";
import { PlatformRefusal } from "../failure.ts";
import { answer } from "./answer.ts";
import { QueryError } from "./error.ts";
import { fieldsFor } from "./fields.ts";
import { readQuery } from "./read.ts";

/** Where clients ask. */
export const QUERIES = "/graphql";
/** The queries of the clients have some hundred bytes. */
const MOST_BYTES = 16 * 1024;

const Body = Type.Object({
  query: Type.String({ maxLength: 65_536 }),
  variables: Type.Optional(Type.Union([Type.Null(), Type.Record(Type.String(), Type.Unknown())])),
});

const CHANGES =
  "GraphQL changes nothing here. Send what is to change to the Machines API on this port: docs/fly-routes.md lists it.";

export function graphqlRoute(app: FastifyInstance, needs: Pick<FlyNeeds, "ask">): void {
  // GraphQL's errors are answers, with status 200: clients take any other for a fault of the server.
  app.post<{ Body: { query: string; variables?: Record<string, unknown> | null } }>(
    QUERIES,
    { schema: { body: Body }, bodyLimit: MOST_BYTES },
    async (request, reply) => {
      const ask = askFor(request, reply, needs.ask);
      let at = "query";
      try {
        const { kind, fields } = readQuery(request.body.query, request.body.variables ?? {});
        at = fields[0]?.as ?? at;
        if (kind !== "query") throw new QueryError(CHANGES, "NOT_IMPLEMENTED");
        return { data: await answer(fieldsFor(ask), fields) };
      } catch (error) {
        if (error instanceof QueryError) return failure(at, error.message, error.code);
        if (error instanceof PlatformRefusal) return failure(at, error.message, error.code.toUpperCase());
        throw error;
      }
    },
  );
}

function failure(at: string, message: string, code: string) {
  return { data: null, errors: [{ message, path: [at], extensions: { code } }] };
}
