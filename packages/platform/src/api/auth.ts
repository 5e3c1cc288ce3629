/** Authentication: a token may do everything; a machine may do very little, and only to itself. */
import type { FastifyRequest } from "fastify";
import { HibernautError } from "../domain/errors.ts";
import type { GuestApi } from "../machines/resources/guest-api.ts";
import type { TokenStore } from "../store/contract.ts";
import { verifyToken } from "./tokens.ts";

/** Which routes a machine may use on itself, through its local API. Routes without this need a token. */
type InsideAccess =
  /** Tokens, and the machine that the path names. */
  | "self"
  /** Only the machine itself. The path does not name one. */
  | "only";

declare module "fastify" {
  interface FastifyContextConfig {
    inside?: InsideAccess;
  }
  interface FastifyRequest {
    /** The machine that the request comes from; null for requests with a token. */
    insideMachine: string | null;
  }
}

/** Connections from inside machines, each with the machine's id. They need no token: only that machine can have opened one. */
export type LocalConnections = WeakMap<object, string>;

interface AuthDeps {
  tokens: TokenStore;
  guestApi: Pick<GuestApi, "identify">;
  local: LocalConnections;
}

/** Returns a hook that refuses callers who may not use the route, before their body is read. */
export function authorize({ tokens, guestApi, local }: AuthDeps) {
  return async (request: FastifyRequest): Promise<void> => {
    const access = request.routeOptions.config.inside;
    const machineId = local.get(request.raw.socket);
    request.insideMachine = machineId ?? null;
    if (machineId !== undefined) return authorizeMachine(guestApi.identify(machineId), access, request.params);
    authorizeToken(tokens, request.headers.authorization);
    if (access === "only")
      throw new HibernautError(
        "permission_denied",
        "Only programs inside a machine can use this route, at the socket `/.hibernaut/api`.",
      );
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

function authorizeToken(tokens: TokenStore, header: string | undefined): void {
  const [scheme = "", token = ""] = (header ?? "").split(/ +/);
  if (scheme.toLowerCase() !== "bearer" || token === "") {
    throw new HibernautError(
      "unauthenticated",
      "This request needs a token. Send it as `Authorization: Bearer <token>`.",
    );
  }
  if (!verifyToken(tokens, token)) {
    throw new HibernautError(
      "unauthenticated",
      "The token is unknown or revoked. Correct HIBERNAUT_API_TOKEN, or unset it on the platform's own host, where the CLI finds the admin token.",
    );
  }
}
