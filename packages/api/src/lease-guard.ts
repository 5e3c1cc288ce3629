/**
 * Holds back what changes a machine while another client has a lease on it: one hook for all routes, so that a new one is
 * held back unless it is named here.
 */
import { LEASE_NONCE_HEADER } from "@hibernaut/domain/lease";
import { isFullAccess } from "@hibernaut/domain/scopes";
import type { TokenRecord } from "@hibernaut/store";
import type { FastifyRequest } from "fastify";
import type { Api, ApiDeps } from "./deps.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** For handlers that take long before they change the machine: throws if another client has taken a lease meanwhile. */
    requireUnheld(): void;
  }
}

const M = "/v1/apps/:app_name/machines/:machine_id";

/** By method and pattern: what a lease does not hold back although it is more than a read. */
export const NOT_HELD: ReadonlySet<string> = new Set([
  // They look at the nonce themselves.
  `POST ${M}/lease`,
  `DELETE ${M}/lease`,
  // Work inside the machine, which a lease has nothing to do with.
  `POST ${M}/exec`,
  `PUT ${M}/archive`,
  `DELETE ${M}/files`,
  `PUT ${M}/files/directory`,
  // It makes other machines. This one continues as it is.
  `POST ${M}/fork`,
  // As on Fly, whose clients send no nonce with these: they change what is written about the machine, or go to its app.
  `PATCH ${M}/metadata`,
  `POST ${M}/metadata/:key`,
  `DELETE ${M}/metadata/:key`,
  `POST ${M}/signal`,
  // An administrator's decision about a copy that the cluster does not use.
  "DELETE /v1/cluster/disputed/:machine_id",
]);

/** Whether a lease keeps clients without its nonce from using the route. */
export function isHeld(method: string, url: string): boolean {
  const isRead = method === "GET" || method === "HEAD" || method === "OPTIONS";
  return url.includes("/:machine_id") && !isRead && !NOT_HELD.has(`${method} ${url}`);
}

/**
 * Whether it is an administrator's to do whatever leases of tenants there are: a tenant must not keep a machine on a host, or
 * at all, by taking leases without end. A deletion says `force`. Between two programs of the administrator, leases hold.
 */
function isOverriding({ method, token, routeOptions, query }: FastifyRequest, owner: TokenRecord | undefined): boolean {
  if (token === null || !isFullAccess(token) || (owner !== undefined && isFullAccess(owner))) return false;
  const isForced = (query as { force?: boolean }).force === true;
  return routeOptions.url === `${M}/move` || (method === "DELETE" && routeOptions.url === M && isForced);
}

/**
 * Registers the hook for the routes that are registered after this. Call it after the hooks that send requests on to other
 * hosts: the one that has the machine has its lease. A program in the machine is not a client.
 */
export function holdLeases(app: Api, { leases, tokens }: Pick<ApiDeps, "leases" | "tokens">): void {
  app.decorateRequest("requireUnheld", () => {});
  app.addHook("preHandler", async (request) => {
    if (request.insideMachine !== null || !isHeld(request.method, request.routeOptions.url ?? "")) return;
    const { app_name: name, machine_id: word } = request.params as { app_name: string; machine_id: string };
    const holder = leases.holder(name, word);
    if (holder !== undefined && isOverriding(request, tokens.get(holder))) return;
    const nonce = nonceOf(request);
    leases.requirePassage(name, word, nonce);
    request.requireUnheld = () => leases.requireUnheld(name, word, nonce);
  });
}

/** The nonce of the lease that the client says it has. Undefined when it sends none. */
export function nonceOf({ headers }: Pick<FastifyRequest, "headers">): string | undefined {
  const nonce = headers[LEASE_NONCE_HEADER];
  return nonce === undefined ? undefined : String(nonce);
}
