/** The cookie of a session, and which pages may act with it. Pure. */
import { SESSION_COOKIE as NAME, SECURE_SESSION_COOKIE as SECURE_NAME } from "@hibernaut/domain/session-cookie";

/** The session that a request shows. */
interface ShownSession {
  secret: string;
  /** Whether the browser got its cookie over TLS, and so gives it over TLS only. */
  secure: boolean;
}

/**
 * Returns the session of a `Cookie` header; undefined without one. Over TLS, only the cookie with the prefix counts. Without,
 * it comes first: something in front of the API ended TLS, and no page without TLS can have made it.
 */
export function sessionIn(header: string | undefined, tls: boolean): ShownSession | undefined {
  const pairs = (header ?? "").split(";").map((part) => part.trim());
  for (const secure of tls ? [true] : [true, false]) {
    const prefix = `${secure ? SECURE_NAME : NAME}=`;
    const pair = pairs.find((part) => part.startsWith(prefix) && part !== prefix);
    if (pair !== undefined) return { secret: pair.slice(prefix.length), secure };
  }
  return undefined;
}

/** Whether a browser that signs in came over TLS: to the API, or as its page says, to something in front of it. */
export function isSecure(origin: string | undefined, tls: boolean): boolean {
  return tls || origin?.toLowerCase().startsWith("https://") === true;
}

/** Returns the `Set-Cookie` of a session that lasts for `maxAgeMs`, or with an empty secret and 0 the end of one. */
export function sessionCookie(secret: string, { secure, maxAgeMs }: { secure: boolean; maxAgeMs: number }): string {
  const maxAge = Math.max(0, Math.floor(maxAgeMs / 1000));
  const attributes = `HttpOnly; SameSite=Strict; Path=/; Max-Age=${maxAge}${secure ? "; Secure" : ""}`;
  return `${secure ? SECURE_NAME : NAME}=${secret}; ${attributes}`;
}

/**
 * Whether a page of an origin is this server's own: its host and port are those that the request was sent to. Over TLS,
 * the page must be, too. Without, it may be, because something in front of the API may have ended TLS.
 */
export function isOwnOrigin(origin: string, host: string | undefined, tls: boolean): boolean {
  const page = parsed(origin);
  if (page === undefined || host === undefined) return false;
  if (page.protocol !== "https:" && (tls || page.protocol !== "http:")) return false;
  // Parsed alike, so that default ports and upper case do not matter.
  return parsed(`${page.protocol}//${host}`)?.host === page.host;
}

function parsed(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // An origin is nothing but scheme, host and port.
  return url?.username === "" && url.pathname === "/" && url.search === "" && url.hash === "" ? url : undefined;
}
