/** `GET /v1/audit`: who changed what. */
import { HibernautError } from "@hibernaut/domain/errors";
import { Type } from "typebox";
import { AuditLine } from "../audit/entry.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, oneOf, streamed } from "../schemas.ts";
import { sinceMs } from "../since.ts";
import { NDJSON, OpenReplies } from "../stream-replies.ts";

const route = routesOf("platform");

const LINES = 100;
const MAX_LINES = 10_000;

const AuditQuerySchema = Type.Object(
  {
    app: Type.Optional(Type.String({ description: "Only what concerns this app." })),
    token: Type.Optional(Type.String({ description: "Only what this token did: its id or its name." })),
    since: Type.Optional(Type.String({ description: "From then on: a time (RFC 3339), or an age such as 10m or 7d." })),
    limit: Type.Optional(
      Type.Integer({ minimum: 0, maximum: MAX_LINES, description: `The last lines, this many. Default: ${LINES}.` }),
    ),
    follow: Type.Optional(oneOf(["0", "1", "false", "true"] as const)),
  },
  closed,
);

/** Registers the route. */
export function auditRoute(app: Api, { audit }: Pick<ApiDeps, "audit">): void {
  const streams = new OpenReplies(app);
  app.get(
    "/v1/audit",
    route(
      "Read who changed what: one JSON object per line, oldest first",
      { scope: "admin" },
      {
        querystring: AuditQuerySchema,
        response: streamed(200, NDJSON, "one entry per line, and empty lines to keep the connection open", AuditLine),
      },
    ),
    ({ query }, reply) => {
      if (audit === undefined)
        throw new HibernautError("failed_precondition", "The audit log is off: HIBERNAUT_AUDIT_MAX_SIZE is 0.");
      const signal = streams.until(reply);
      const blocks = audit.read({
        ...(query.app !== undefined && { app: query.app }),
        ...(query.token !== undefined && { token: query.token }),
        ...(query.since !== undefined && { sinceMs: sinceMs(query.since) }),
        limit: query.limit ?? (query.since === undefined ? LINES : MAX_LINES),
        follow: query.follow === "1" || query.follow === "true",
        signal,
      });
      return streams.send(reply, blocks, signal);
    },
  );
}
