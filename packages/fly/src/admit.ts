/** Who is let in before the body of a request is read: to read and translate one is work. The platform has the last word. */
import { hasScope, reachesApp } from "@hibernaut/domain/scopes";
import type { FastifyReply, FastifyRequest } from "fastify";
import { askFor, path, tokenOf } from "./ask.ts";
import type { FlyNeeds } from "./contract.ts";
import { PlatformRefusal, Refusal } from "./failure.ts";
import { QUERIES } from "./graphql/route.ts";

/** What a token needs that only runs programs. All other changes are those of a deploy. */
const OF_EXEC = /\/(exec|signal|start)$/;
/** A body that is larger is worth a request to the platform, in bytes: its rates count that one. */
const LARGE_BYTES = 16 * 1024;

/** Returns a hook that refuses who could not do anything with the route in any case. */
export function admit({ ask, grantOf }: Pick<FlyNeeds, "ask" | "grantOf">) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { method, headers, routeOptions, params } = request;
    const grant = grantOf(tokenOf(headers.authorization));
    const { app_name: app } = (params ?? {}) as { app_name?: string };
    const asking = askFor(request, reply, ask);
    // The platform says what became of the token, or that there is no such app for it.
    if (grant === undefined) return void (await asking("GET", "/v1/apps").catch(inWords));
    if (app !== undefined && !reachesApp(grant, app)) return void (await asking("GET", path`/v1/apps/${app}`));
    const url = routeOptions.url ?? "";
    const needed = OF_EXEC.test(url) ? (["exec", "deploy"] as const) : "deploy";
    if (method !== "GET" && url !== QUERIES && !hasScope(grant.scopes, needed))
      throw new Refusal(
        403,
        "permission_denied: This needs a token with the scope `deploy`, or `exec` to run a program: `hibernaut tokens create <name> --scope deploy`.",
      );
    const length = headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : Infinity;
    if (length > LARGE_BYTES) await asking("GET", "/v1/platform/regions");
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
