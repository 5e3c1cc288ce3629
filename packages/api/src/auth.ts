/** Authentication: a token may do what its scopes say; a machine may do very little, and only to itself. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { GuestApi } from "@hibernaut/machines";
import type { TokenRecord, TokenStore } from "@hibernaut/store";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type InsideAccess, requireAccess } from "./access.ts";
import { vouchedToken } from "./cluster/peer.ts";
import { sessionOf } from "./session-access.ts";
import type { Sessions } from "./sessions.ts";
import { findToken, isLive } from "./tokens.ts";

/** Connections from inside machines, each with the machine's id. They need no token: only that machine can have opened one. */
export type LocalConnections = WeakMap<object, string>;

interface AuthDeps {
  tokens: TokenStore;
  sessions: Sessions;
  guestApi: Pick<GuestApi, "identify">;
  local: LocalConnections;
  /** Called with each request that has a valid token, before it is known what the token may do. */
  onToken?(token: TokenRecord): void;
}

/** Returns a hook that refuses callers who may not use the route, before their body is read. */
export function authorize({ tokens, sessions, guestApi, local, onToken }: AuthDeps) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { inside: access, open } = request.routeOptions.config;
    const machineId = local.get(request.raw.socket);
    request.insideMachine = machineId ?? null;
    if (machineId !== undefined) return authorizeMachine(guestApi.identify(machineId), access, request.params);
    if (open === true) return;
    const { authorization } = request.headers;
    // A program that shows a token means that one, whatever cookies it sends along.
    const vouched = vouchedToken(request, tokens);
    const session =
      authorization === undefined && vouched === undefined ? sessionOf(request, reply, sessions) : undefined;
    request.session = session ?? null;
    const token = vouched ?? session?.token ?? authenticate(tokens, authorization);
    request.token = token;
    onToken?.(token);
    if (access === "only")
      throw new HibernautError(
        "permission_denied",
        "Only programs inside a machine can use this route, at the socket `/.hibernaut/api`.",
      );
    requireAccess(token, request);
  };
}

function authorizeMachine(self: { app: string; id: string }, access: InsideAccess | undefined, params: unknown): void {
  const { app_name, machine_id } = (params ?? {}) as { app_name?: string; machine_id?: string };
  if (access === "only") return;
  if (access === "self" && app_name === self.app && machine_id === self.id) return;
  throw new HibernautError(
    "permission_denied",
    `A machine can read, suspend and stop only itself (/v1/apps/${self.app}/machines/${self.id}).`,
  );
}

function authenticate(tokens: TokenStore, header: string | undefined): TokenRecord {
  const [scheme = "", secret = ""] = (header ?? "").split(/ +/);
  if (scheme.toLowerCase() !== "bearer" || secret === "") {
    throw new HibernautError(
      "unauthenticated",
      "This request needs a token. Send it as `Authorization: Bearer <token>`.",
    );
  }
  const token = findToken(tokens, secret);
  if (token !== undefined && isLive(token)) return token;
  // Only someone who has the whole token is told what became of it.
  if (token?.revokedAt === null)
    throw new HibernautError(
      "unauthenticated",
      `Token ${token.name} (${token.id}) expired at ${token.expiresAt}. Set HIBERNAUT_API_TOKEN to another one; someone with full access makes it with \`hibernaut tokens create\`.`,
      { token_id: token.id, expired_at: token.expiresAt, replaced_by: token.replacedBy },
    );
  throw new HibernautError(
    "unauthenticated",
    "The token is unknown or revoked. Correct HIBERNAUT_API_TOKEN, or unset it on the platform's own host, where the CLI finds the admin token.",
  );
}
