/** Who asks, and what they may do: a token may do everything, a machine very little, and to itself alone. */
import type { FastifyRequest } from "fastify";
import { HibernautError } from "../domain/errors.ts";
import type { MachineService } from "../machines/service.ts";
import type { TokenStore } from "../store/contract.ts";
import { verifyToken } from "./tokens.ts";

/** Which routes a machine may use on itself, through its local API. Routes without this are for tokens only. */
export type InsideAccess =
  /** Tokens and the machine itself, which the path names. */
  | "self"
  /** Only from inside a machine; the path names none. */
  | "only";

declare module "fastify" {
  interface FastifyContextConfig {
    inside?: InsideAccess;
  }
  interface FastifyRequest {
    /** The machine whose program asks; null for everyone else. */
    insideMachine: string | null;
  }
}

/** Connections that came out of machines. Whoever holds one is that machine: no token is needed or looked at. */
export type LocalConnections = WeakMap<object, string>;

export interface AuthDeps {
  tokens: TokenStore;
  machines: MachineService;
  local: LocalConnections;
}

/** A hook that refuses, before the body is read, whoever may not use the route. */
export function authorize({ tokens, machines, local }: AuthDeps) {
  return async (request: FastifyRequest): Promise<void> => {
    const access = request.routeOptions.config.inside;
    const machineId = local.get(request.raw.socket);
    request.insideMachine = machineId ?? null;
    if (machineId !== undefined) return authorizeMachine(machines.identify(machineId), access, request.params);
    authorizeToken(tokens, request.headers.authorization);
    if (access === "only")
      throw new HibernautError(
        "permission_denied",
        "This is for programs inside a machine. They reach it at the socket `/.hibernaut/api`.",
      );
  };
}

function authorizeMachine(self: { app: string; id: string }, access: InsideAccess | undefined, params: unknown): void {
  const { app_name, machine_id } = (params ?? {}) as { app_name?: string; machine_id?: string };
  if (access === "only") return;
  if (access === "self" && app_name === self.app && machine_id === self.id) return;
  throw new HibernautError(
    "permission_denied",
    `A machine may read, suspend and stop itself (/v1/apps/${self.app}/machines/${self.id}) and nothing else.`,
  );
}

function authorizeToken(tokens: TokenStore, header: string | undefined): void {
  const [scheme = "", token = ""] = (header ?? "").split(/ +/);
  if (scheme.toLowerCase() !== "bearer" || token === "") {
    throw new HibernautError("unauthenticated", "A token is needed. Send it as `Authorization: Bearer <token>`.");
  }
  if (!verifyToken(tokens, token)) {
    throw new HibernautError(
      "unauthenticated",
      "The token is unknown or revoked. Make one with `hibernaut tokens create`.",
    );
  }
}
