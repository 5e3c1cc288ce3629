/** Requests with a session: which are let in, and which may come from a page. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { isOwnOrigin, sessionCookie, sessionIn } from "./session-cookie.ts";
import type { LiveSession, Sessions } from "./sessions.ts";

const READS = new Set(["GET", "HEAD"]);
/** What `Sec-Fetch-Site` says of a page of the same server, and of an address that someone entered. */
const OWN_SITES = new Set(["same-origin", "none"]);
/** Sent by the dashboard, as browsers send no `Sec-Fetch-Site` to servers without TLS. The client has the same name. */
const PAGE_HEADER = "hibernaut-page";

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
  if (!mayComeFromAnyPage(request)) requireOwnOrigin(request);
  const used = sessions.use(found);
  if (used === undefined) return found;
  reply.header("set-cookie", sessionCookie(secret, { secure, maxAgeMs: used.endsAt - used.record.usedAt }));
  return used;
}

/**
 * Whether a request needs no `Origin`. Browsers send none when a page reads from its own server, but most of them
 * `Sec-Fetch-Site`, and ours a field that no other server's page may add. Where neither came, only what every scope may
 * read is answered: what pages must not see of another site, browsers keep from them.
 */
function mayComeFromAnyPage({ method, headers, routeOptions }: FastifyRequest): boolean {
  if (!READS.has(method) || headers.upgrade !== undefined || headers.origin !== undefined) return false;
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return OWN_SITES.has(site);
  return routeOptions.config.scope === "read" || headers[PAGE_HEADER] !== undefined;
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
