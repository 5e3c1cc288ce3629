/** Requests with a session: which are let in, and which may come from a page. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { HibernautError } from "../domain/errors.ts";
import { isOwnOrigin, sessionCookie, sessionIn } from "./session-cookie.ts";
import type { LiveSession, Sessions } from "./sessions.ts";

const READS = new Set(["GET", "HEAD"]);

/**
 * Returns the session of a request; undefined if it shows none. Throws `unauthenticated` for one that has ended, and
 * `permission_denied` unless the request comes from a page of this server: browsers send cookies with requests of other
 * pages, too.
 */
export function sessionOf(request: FastifyRequest, reply: FastifyReply, sessions: Sessions): LiveSession | undefined {
  const shown = sessionIn(request.headers.cookie, request.protocol === "https");
  if (shown === undefined) return undefined;
  const { secret, secure } = shown;
  const found = sessions.find(secret);
  if (found === undefined) {
    reply.header("set-cookie", sessionCookie("", { secure, maxAgeMs: 0 }));
    throw new HibernautError("unauthenticated", "The session has ended. Sign in again with a token.");
  }
  const { origin, upgrade } = request.headers;
  // Pages may read without saying where they come from. What they must not read of another site, browsers keep from them.
  if (!READS.has(request.method) || upgrade !== undefined || origin !== undefined) requireOwnOrigin(request);
  const used = sessions.use(found);
  if (used === undefined) return found;
  reply.header("set-cookie", sessionCookie(secret, { secure, maxAgeMs: used.endsAt - used.record.usedAt }));
  return used;
}

/** Throws `permission_denied` unless the request comes from a page of this server. */
export function requireOwnOrigin({ headers, protocol }: FastifyRequest): void {
  const { origin, host } = headers;
  if (origin !== undefined && isOwnOrigin(origin, host, protocol === "https")) return;
  const from =
    origin === undefined ? "does not say which page it is from" : `is from a page of ${origin.slice(0, 200)}`;
  const message = `With a session, only pages of this server may do this, and the request ${from}; it was sent to ${(host ?? "no host").slice(0, 200)}. Programs use a token instead. A proxy in front of the API must pass \`Host\` and \`Origin\` on.`;
  throw new HibernautError("permission_denied", message, { origin: origin?.slice(0, 200) ?? null });
}
