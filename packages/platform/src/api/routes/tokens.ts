/** `/v1/tokens` */
import type { Api, ApiDeps } from "../deps.ts";
import { NoQuery, Ok, replies } from "../schemas.ts";
import { CreateTokenBody, NewToken, TokenList, TokenParams } from "./tokens.schemas.ts";
import { createToken, revokeToken } from "../tokens.ts";
import { tokenWire } from "../views.ts";

/** Registers the routes of tokens. */
export function tokenRoutes(app: Api, { tokens }: Pick<ApiDeps, "tokens">): void {
  const tags = ["tokens"];

  app.get(
    "/v1/tokens",
    {
      schema: {
        tags,
        summary: "List tokens, without their secrets",
        querystring: NoQuery,
        response: replies(200, TokenList),
      },
    },
    async () => ({ tokens: tokens.list().map(tokenWire) }),
  );

  app.post(
    "/v1/tokens",
    {
      schema: {
        tags,
        summary: "Create a token; its secret is shown once",
        querystring: NoQuery,
        body: CreateTokenBody,
        response: replies(201, NewToken),
      },
    },
    async (request, reply) => {
      const { record, token } = createToken(tokens, request.body.name);
      return reply.code(201).send({ id: record.id, name: record.name, token, created_at: record.createdAt });
    },
  );

  app.delete(
    "/v1/tokens/:token_id",
    {
      schema: {
        tags,
        summary: "Revoke a token",
        params: TokenParams,
        querystring: NoQuery,
        response: replies(200, Ok),
      },
    },
    async (request) => {
      revokeToken(tokens, request.params.token_id);
      return { ok: true as const };
    },
  );
}
