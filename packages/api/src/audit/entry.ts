/** One line of the audit log: who changed what, from where, and how it ended. */
import { type Static, Type } from "typebox";
import { closed, nullable, time } from "../schemas.ts";

/** A line. Values of secrets, commands, files and other bodies are in none. */
export const AuditLine = Type.Object(
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

export type AuditEntry = Static<typeof AuditLine>;

/** Which lines to read. */
export interface AuditQuery {
  /** From then on, in milliseconds since 1970. */
  sinceMs?: number;
  app?: string;
  /** The id or the name of a token. */
  token?: string;
  /** The last ones, this many. */
  limit: number;
  /** Continue with new lines until the signal aborts. */
  follow: boolean;
  signal: AbortSignal;
}

/** Whether a line is wanted. */
export function matches(entry: AuditEntry, { sinceMs, app, token }: AuditQuery): boolean {
  if (sinceMs !== undefined && Date.parse(entry.at) < sinceMs) return false;
  if (app !== undefined && entry.app !== app) return false;
  return token === undefined || entry.token.id === token || entry.token.name === token;
}
