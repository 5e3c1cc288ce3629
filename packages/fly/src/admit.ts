/** Who is let in before the body of a request is read: to read and translate one is work. The platform has the last word. */
import { hasScope, reachesApp } from "@hibernaut/domain/scopes";
import type { FastifyReply, FastifyRequest } from "fastify";
import { askFor, path, tokenOf } from "./ask.ts";
import type { FlyNeeds } from "./contract.ts";
import { PlatformRefusal, Refusal } from "./failure.ts";

/** Returns a hook that refuses who could not do anything with the route in any case. */
export function admit({ ask, grantOf }: Pick<FlyNeeds, "ask" | "grantOf">) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const grant = grantOf(tokenOf(request.headers.authorization));
    const { app_name: app } = (request.params ?? {}) as { app_name?: string };
    // The platform says what became of the token, or that there is no such app for it.
    if (grant === undefined) await askFor(request, reply, ask)("GET", "/v1/apps").catch(inWords);
    else if (app !== undefined && !reachesApp(grant, app))
      await askFor(request, reply, ask)("GET", path`/v1/apps/${app}`);
    else if (
      request.method !== "GET" &&
      !hasScope(grant.scopes, ["exec", "deploy"]) &&
      !request.url.startsWith("/graphql")
    )
      throw new Refusal(
        403,
        "permission_denied: This needs a token with the scope `deploy` or `exec`: `hibernaut tokens create <name> --scope deploy`.",
      );
  };
}

/** The platform's advice for a token that it does not know is for those who use its own command line. */
function inWords(error: unknown): never {
  const isUnknown = error instanceof PlatformRefusal && error.message.startsWith("The token is unknown");
  if (!isUnknown) throw error;
  throw new Refusal(
    401,
    "unauthenticated: The token is unknown or revoked. Set FLY_API_TOKEN to one that `hibernaut tokens create` made.",
  );
}
