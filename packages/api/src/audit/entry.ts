/** One line of the audit log: who changed what, from where, and how it ended. */

/** A line. Values of secrets, commands, files and other bodies are in none. */
export interface AuditEntry {
  /** RFC 3339, in UTC. */
  at: string;
  /**
   * `begin`: the request is about to be carried out. `end`: it was answered. `refused`: the token may not do this, so
   * nothing was done.
   */
  phase: "begin" | "end" | "refused";
  /** The same in both lines of a request, in the reply's `x-request-id`, and in the platform's log. */
  request_id: string;
  token: { id: string; name: string };
  /** Whether the request came from a browser with a session of the token. Absent where it did not. */
  session?: true;
  /** The client's address, as the platform sees it. */
  from: string;
  method: string;
  /** The pattern of the path, such as `/v1/apps/:app_name/secrets`. */
  route: string;
  /** The app that the path or the request names; null for none. */
  app: string | null;
  /** What the path names, and harmless parts of the request that say what is meant. */
  target: Record<string, unknown>;
  /** The status of the reply; null in a `begin`. */
  status: number | null;
}

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
