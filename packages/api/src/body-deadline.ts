/** A client that trickles its request must not hold a connection forever. */

import type { Api } from "./deps.ts";
import { refuseConnection } from "./errors.ts";

/** How long a whole body may take, in milliseconds. A MiB, the most that is accepted, takes a second even on a slow line. */
const BODY_DEADLINE_MS = 30_000;

declare module "fastify" {
  interface FastifyContextConfig {
    /** The body is a stream of any length, and its route takes care of clients that stop sending. */
    streamsBody?: boolean;
  }
}

/** Cuts off clients whose body takes too long. Node's own limit can't make an exception for some routes. */
export function limitBodies(app: Pick<Api, "addHook">, deadlineMs = BODY_DEADLINE_MS): void {
  app.addHook("onRequest", async ({ raw, routeOptions }) => {
    // One that is asked within this process has no socket to wait for: it comes whole, and does not say so.
    const complete: unknown = raw.complete;
    if (complete !== false || routeOptions.config.streamsBody === true) return;
    const timer = setTimeout(() => {
      const late = Object.assign(new Error("the body took too long"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
      if (!raw.complete) refuseConnection(late, raw.socket);
    }, deadlineMs).unref();
    raw.once("end", () => clearTimeout(timer)).once("close", () => clearTimeout(timer));
  });
}
