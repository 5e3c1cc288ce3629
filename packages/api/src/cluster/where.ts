/** Which host of a cluster answers a request. */
import type { FastifyRequest } from "fastify";

/**
 * - `here`: the host that was asked. It concerns that host, or its client, or all hosts know the same.
 * - `machine`: the host that owns the machine of the path.
 * - `volume`: the host that has the volume of the path.
 * - `template`: a host that has the template of the path.
 * - `release`: the host that the client of the release reports to.
 * - `host`: the host of the path.
 * - `placed`: a host that is chosen for what is created.
 * - `all`: every host, and the answers are put together.
 */
export type Where = "here" | "machine" | "volume" | "template" | "release" | "host" | "placed" | "all";

const A = "/v1/apps/:app_name";
const M = `${A}/machines/:machine_id`;
const V = `${A}/volumes/:volume_id`;
const T = `${A}/templates/:template`;

/** By method and pattern: the routes that more than the host that was asked has to do with, and whose path does not say so. */
export const ROUTES: Readonly<Record<string, Where>> = {
  [`POST ${A}/releases/:version`]: "release",
  [`POST ${A}/releases/:version/command`]: "release",
  "POST /v1/cluster/hosts/:host/drain": "host",
  "DELETE /v1/cluster/hosts/:host/drain": "host",
  [`POST ${A}/machines`]: "placed",
  [`POST ${A}/volumes`]: "placed",
  [`POST ${A}/templates`]: "placed",
  "GET /v1/machines": "all",
  [`GET ${A}/machines`]: "all",
  [`GET ${A}/logs`]: "all",
  [`GET ${A}/quota`]: "all",
  [`GET ${A}/volumes`]: "all",
  [`GET ${A}/templates`]: "all",
  [`GET ${T}`]: "all",
  "GET /v1/stream": "all",
  "GET /v1/timeline": "all",
  "GET /v1/wakes": "all",
  "GET /v1/usage": "all",
  "GET /v1/audit": "all",
};

/** Returns where the route of a request is answered. */
export function whereOf({
  method,
  routeOptions: { url = "" },
}: Pick<FastifyRequest, "method"> & { routeOptions: { url?: string | undefined } }): Where {
  const said = ROUTES[`${method === "HEAD" ? "GET" : method} ${url}`];
  if (said !== undefined) return said;
  if (url.startsWith(M)) return "machine";
  if (url.startsWith(V)) return "volume";
  return url.startsWith(T) ? "template" : "here";
}
