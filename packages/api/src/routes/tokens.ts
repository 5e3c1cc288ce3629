/** `/v1/tokens` */
import { HibernautError } from "@hibernaut/domain/errors";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { routesOf } from "../route.ts";
import { Ok } from "../schemas.ts";
import type { TokenUse } from "../token-use.ts";
import { createToken, revokeToken, rotateToken } from "../tokens.ts";
import { newTokenWire, tokenWire } from "../views.ts";
import {
  CreateTokenBody,
  NewToken,
  OVERLAP_S,
  RotatedToken,
  RotateTokenBody,
  TokenList,
  TokenParams,
} from "./tokens.schemas.ts";

const route = routesOf("tokens");

/** Registers the routes of tokens. */
export function tokenRoutes(
  app: Api,
  { tokens, tokenUse, write }: Pick<ApiDeps, "tokens"> & Writes & { tokenUse: Pick<TokenUse, "of"> },
): void {
  app.get(
    "/v1/tokens",
    route("List tokens, without their secrets", { scope: "admin" }, { reply: TokenList }),
    async () => ({
      tokens: tokens
        .list()
        .map((token) => tokenWire({ ...token, lastUsedAt: tokenUse.of(token.id) ?? token.lastUsedAt })),
    }),
  );

  app.post(
    "/v1/tokens",
    route(
      "Create a token; its secret is shown once",
      { scope: "admin", audited: ["name", "scopes", "apps", "previews", "expires_in", "e2b"] },
      { body: CreateTokenBody, created: NewToken },
    ),
    async ({ body: { name, scopes, apps, previews = false, expires_in: lifeS, e2b = false } }, reply) => {
      if (previews && (apps === undefined || e2b))
        throw new HibernautError(
          "invalid_argument",
          "A token for previews names the apps in `apps`, and cannot be a key for E2B's clients. Add `apps`, or leave out `e2b`.",
          { field: "previews" },
        );
      if (e2b && apps?.length !== 1)
        throw new HibernautError(
          "invalid_argument",
          "A key for E2B's clients belongs to one app: its sandboxes are machines of that app. Name it in `apps`.",
          { field: "apps" },
        );
      const made = await write((shared) =>
        createToken(shared.tokens, name, {
          ...(e2b && { e2b, scopes: ["deploy", "exec"] }),
          ...(scopes !== undefined && { scopes: [...new Set(scopes)] }),
          ...(apps !== undefined && { [previews ? "previewsOf" : "apps"]: [...new Set(apps)] }),
          ...(previews && { apps: [] }),
          ...(lifeS !== undefined && { lifeMs: lifeS * 1000 }),
        }),
      );
      return reply.code(201).send(newTokenWire(made));
    },
  );

  app.post(
    "/v1/tokens/:token_id/rotate",
    route(
      "Create a token in the place of another, which stays valid for a while",
      { scope: "admin", audited: ["overlap", "expires_in"] },
      { params: TokenParams, optionalBody: RotateTokenBody, created: RotatedToken },
    ),
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
    route("Revoke a token", { scope: "admin" }, { params: TokenParams, reply: Ok }),
    async (request) => {
      await write((shared) => revokeToken(shared.tokens, request.params.token_id));
      return { ok: true as const };
    },
  );
}
