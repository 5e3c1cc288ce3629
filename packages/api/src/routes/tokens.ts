/** `/v1/tokens` */
import { allowNoBody } from "./actions.ts";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { NoQuery, Ok, replies } from "../schemas.ts";
import {
  CreateTokenBody,
  NewToken,
  OVERLAP_S,
  RotatedToken,
  RotateTokenBody,
  TokenList,
  TokenParams,
} from "./tokens.schemas.ts";
import type { TokenUse } from "../token-use.ts";
import { createToken, revokeToken, rotateToken } from "../tokens.ts";
import { newTokenWire, tokenWire } from "../views.ts";

/** Registers the routes of tokens. */
export function tokenRoutes(
  app: Api,
  { tokens, tokenUse, write }: Pick<ApiDeps, "tokens"> & Writes & { tokenUse: Pick<TokenUse, "of"> },
): void {
  const tags = ["tokens"];

  app.get(
    "/v1/tokens",
    {
      config: { scope: "admin" },
      schema: {
        tags,
        summary: "List tokens, without their secrets",
        querystring: NoQuery,
        response: replies(200, TokenList),
      },
    },
    async () => ({
      tokens: tokens
        .list()
        .map((token) => tokenWire({ ...token, lastUsedAt: tokenUse.of(token.id) ?? token.lastUsedAt })),
    }),
  );

  app.post(
    "/v1/tokens",
    {
      config: { scope: "admin", audited: ["name", "scopes", "apps", "expires_in"] },
      schema: {
        tags,
        summary: "Create a token; its secret is shown once",
        querystring: NoQuery,
        body: CreateTokenBody,
        response: replies(201, NewToken),
      },
    },
    async ({ body: { name, scopes, apps, expires_in: lifeS } }, reply) => {
      const made = await write((shared) =>
        createToken(shared.tokens, name, {
          ...(scopes !== undefined && { scopes: [...new Set(scopes)] }),
          ...(apps !== undefined && { apps: [...new Set(apps)] }),
          ...(lifeS !== undefined && { lifeMs: lifeS * 1000 }),
        }),
      );
      return reply.code(201).send(newTokenWire(made));
    },
  );

  app.post(
    "/v1/tokens/:token_id/rotate",
    {
      config: { scope: "admin", audited: ["overlap", "expires_in"] },
      preValidation: allowNoBody,
      schema: {
        tags,
        summary: "Create a token in the place of another, which stays valid for a while",
        params: TokenParams,
        querystring: NoQuery,
        body: RotateTokenBody,
        response: replies(201, RotatedToken),
      },
    },
    async ({ params, body: { overlap = OVERLAP_S, expires_in: lifeS } }, reply) => {
      const lifeMs = lifeS === undefined ? undefined : lifeS * 1000;
      const { old, ...made } = await write((shared) =>
        rotateToken(shared.tokens, params.token_id, { overlapMs: overlap * 1000, lifeMs }),
      );
      return reply.code(201).send({ token: newTokenWire(made), old: { id: old.id, valid_until: old.validUntil } });
    },
  );

  app.delete(
    "/v1/tokens/:token_id",
    {
      config: { scope: "admin" },
      schema: {
        tags,
        summary: "Revoke a token",
        params: TokenParams,
        querystring: NoQuery,
        response: replies(200, Ok),
      },
    },
    async (request) => {
      await write((shared) => revokeToken(shared.tokens, request.params.token_id));
      return { ok: true as const };
    },
  );
}
