/** What a route says about who may use it, and what that means for a token. */
import { HibernautError } from "@hibernaut/domain/errors";
import { type Grant, hasScope, type NeededScope, reachesApp } from "@hibernaut/domain/scopes";
import type { TokenRecord } from "@hibernaut/store";
import type { FastifyRequest } from "fastify";
import type { LiveSession } from "./sessions.ts";

/** Which routes a machine may use on itself, through its local API. Routes without this need a token. */
export type InsideAccess =
  /** Tokens, and the machine that the path names. */
  | "self"
  /** Only the machine itself. The path does not name one. */
  | "only";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What a token needs. Every route says it, except those for machines only. */
    scope?: NeededScope;
    /**
     * What a token that is limited to apps gets from a route whose path names no app. `filtered`: the handler shows only
     * what belongs to the token's apps. `shared`: the route concerns no app. Absent: nothing, the route refuses.
     * `refused`: it refuses although its path names an app. `previews`: it concerns only the previews of that app, and takes
     * tokens that are limited to these, and no others.
     */
    limited?: "filtered" | "shared" | "refused" | "previews";
    inside?: InsideAccess;
    /** Needs no token: someone who signs in has none yet. */
    open?: boolean;
  }
  interface FastifyRequest {
    /** The machine that the request comes from; null for requests with a token. */
    insideMachine: string | null;
    /** The token of the request, or of its session; null for requests from inside a machine, and where none is needed. */
    token: TokenRecord | null;
    /** The session of a request from a browser; null for all others. */
    session: LiveSession | null;
  }
}

/**
 * Throws unless the token may use the route. An app out of the token's reach is `not_found`, whether it exists or not:
 * nobody finds out names by trying.
 */
export function requireAccess(token: TokenRecord, request: FastifyRequest): void {
  const { scope = "admin", limited } = request.routeOptions.config;
  const app = (request.params as { app_name?: unknown } | null)?.app_name;
  if (app === undefined) {
    if (token.apps !== null && limited === undefined) throw limitedRefusal(token, scope);
  } else {
    const isForPreviews = limited === "previews" && token.previewsOf?.includes(String(app)) === true;
    if (!isForPreviews) requireReach(token, String(app));
    if (token.apps !== null && limited === "previews" && !isForPreviews)
      throw previewsRefusal(token, scope, String(app));
    if (token.apps !== null && limited === "refused") throw limitedRefusal(token, scope);
  }
  if (!hasScope(token.scopes, scope)) throw scopeRefusal(token, scope, app === undefined ? undefined : String(app));
}

/** Throws `not_found` unless the token reaches the app. */
export function requireReach(token: Grant | null, app: string): void {
  if (token === null || reachesApp(token, app)) return;
  const apps = token.previewsOf
    ? `previews of ${token.previewsOf.join(", ") || "no app"}`
    : `the apps: ${(token.apps ?? []).join(", ") || "none"}`;
  const message = `There is no app ${app.slice(0, 80)} for this token, which is limited to ${apps}. Use one of them, or another token.`;
  throw new HibernautError("not_found", message, { app_name: app.slice(0, 80), apps: token.apps });
}

/** Throws `permission_denied` for a token that is limited to apps: what it asks for concerns others as well. */
export function requireUnlimited(token: TokenRecord | null, scope: NeededScope): void {
  if (token !== null && token.apps !== null) throw limitedRefusal(token, scope);
}

/** Returns those of the items that the request's token reaches, for `limited: "filtered"`. */
export function within<T>(
  { token }: Pick<FastifyRequest, "token">,
  items: readonly T[],
  appOf: (item: T) => string,
): T[] {
  return items.filter((item) => token === null || reachesApp(token, appOf(item)));
}

/**
 * Returns the error without the app that it names, if the token does not reach that app: whose hostname or port it is
 * that someone asked for.
 */
export function concealed(error: HibernautError, token: Grant | null): HibernautError {
  const { app_name: app, ...details } = error.details;
  if (error.code !== "already_exists" || token === null || typeof app !== "string" || reachesApp(token, app))
    return error;
  const what = String(details.hostname ?? (details.port === undefined ? "This" : `Port ${String(details.port)}`));
  return new HibernautError(error.code, `${what} already belongs to another app. Choose another.`, details);
}

function scopeRefusal(token: TokenRecord, scope: NeededScope, app: string | undefined): HibernautError {
  const [least = "admin"] = [scope].flat();
  const own = token.previewsOf?.map((of) => ` --app ${of}`) ?? (app === undefined ? [] : [` --app ${app}`]);
  const only = token.apps === null ? "" : own.join("") + (token.previewsOf ? " --previews" : "");
  const message = `This needs a token with the scope \`${least}\`; token ${token.name} (${token.id}) has ${token.scopes.join(", ")}. Someone with full access makes one: \`hibernaut tokens create <name> --scope ${least}${only}\`.`;
  return new HibernautError("permission_denied", message, {
    missing_scope: least,
    scopes: token.scopes,
    token_id: token.id,
  });
}

function previewsRefusal(token: TokenRecord, scope: NeededScope, app: string): HibernautError {
  const [least = "admin"] = [scope].flat();
  const message = `This needs a token with the scope \`${least}\` for previews of ${app}, which are apps of their own, and token ${token.name} (${token.id}) is limited to other apps. Someone with full access makes one: \`hibernaut tokens create <name> --scope ${least} --app ${app} --previews\`.`;
  return new HibernautError("permission_denied", message, { apps: token.apps, token_id: token.id });
}

function limitedRefusal(token: TokenRecord, scope: NeededScope): HibernautError {
  const [least = "admin"] = [scope].flat();
  const message = `This needs a token with the scope \`${least}\` for all apps, and token ${token.name} (${token.id}) is limited to apps. Someone with full access makes one: \`hibernaut tokens create <name> --scope ${least}\`.`;
  return new HibernautError("permission_denied", message, {
    missing_scope: least,
    scopes: token.scopes,
    apps: token.apps,
    token_id: token.id,
  });
}
