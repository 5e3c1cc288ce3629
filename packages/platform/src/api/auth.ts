/** Lets in who has a live token. */
import type { FastifyRequest } from "fastify";
import { HibernautError } from "../errors.ts";
import type { TokenStore } from "../store/contract.ts";
import { verifyToken } from "./tokens.ts";

/** A hook that refuses requests without a live token, before their body is read. */
export function requireToken(tokens: TokenStore) {
  return async (request: FastifyRequest): Promise<void> => {
    const [scheme = "", token = ""] = (request.headers.authorization ?? "").split(/ +/);
    if (scheme.toLowerCase() !== "bearer" || token === "") {
      throw new HibernautError("unauthenticated", "A token is needed. Send it as `Authorization: Bearer <token>`.");
    }
    if (!verifyToken(tokens, token)) {
      throw new HibernautError(
        "unauthenticated",
        "The token is unknown or revoked. Make one with `hibernaut tokens create`.",
      );
    }
  };
}
