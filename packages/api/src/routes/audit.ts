/** `GET /v1/audit`: who changed what. */
import { HibernautError } from "@hibernaut/domain/errors";
import { Type } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { closed, nullable, oneOf, replies, time } from "../schemas.ts";
import { sinceMs } from "../since.ts";
import { NDJSON, StreamReplies } from "../stream-replies.ts";

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

const AuditLine = Type.Object(
  {
    at: time,
    phase: Type.Unsafe<"begin" | "end" | "refused">({
      type: "string",
      enum: ["begin", "end", "refused"],
      description: "Before the change, after it, or instead of it, because the token may not do this.",
    }),
    request_id: Type.String({ description: "The same in both lines of a request." }),
    token: Type.Object({ id: Type.String(), name: Type.String() }, closed),
    session: Type.Optional(
      Type.Literal(true, { description: "The request came from a browser, with a session of the token." }),
    ),
    from: Type.String({ description: "The client's address." }),
    method: Type.String(),
    route: Type.String({ description: "The pattern of the path." }),
    app: nullable(Type.String()),
    target: Type.Record(Type.String(), Type.Unknown(), { description: "What the request named." }),
    status: nullable(Type.Integer(), "Null in a `begin`."),
  },
  { ...closed, title: "AuditEntry", description: "A line of the audit log." },
);

/** Registers the route. */
export function auditRoute(app: Api, { audit }: Pick<ApiDeps, "audit">): void {
  const streams = new StreamReplies(app);
  const { default: failure } = replies(200, AuditLine);
  app.get(
    "/v1/audit",
    {
      config: { scope: "admin" },
      schema: {
        tags: ["platform"],
        summary: "Read who changed what: one JSON object per line, oldest first",
        querystring: AuditQuerySchema,
        response: {
          200: {
            description: "one entry per line, and empty lines to keep the connection open",
            content: { [NDJSON]: { schema: AuditLine } },
          },
          default: failure,
        },
      },
    },
    ({ query }, reply) => {
      if (audit === undefined)
        throw new HibernautError("failed_precondition", "The audit log is off: HIBERNAUT_AUDIT_MAX_SIZE is 0.");
      const signal = AbortSignal.any([streams.closing, clientGone(reply)]);
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
