/** Where a request is answered, by its route. */
import type { FastifyRequest } from "fastify";
import { ROUTES, type Where } from "./routes-table.ts";

/** Returns what the table says of a request's route. */
export function whereOf({ method, routeOptions: { url } }: Pick<FastifyRequest, "method" | "routeOptions">): Where {
  return ROUTES[`${method === "HEAD" ? "GET" : method} ${url}`] ?? "here";
}
