/** The cookie of a session, and which pages may act with it. Pure. */

const NAME = "hibernaut_session";

/**
 * The cookie's name. Over TLS, its prefix lets browsers accept it from this host alone, so that no other host of the domain
 * can plant one.
 */
function nameOf(tls: boolean): string {
  return tls ? `__Host-${NAME}` : NAME;
}

/** Returns the session's secret from a `Cookie` header; undefined without one. */
export function secretIn(header: string | undefined, tls: boolean): string | undefined {
  const prefix = `${nameOf(tls)}=`;
  const pair = header
    ?.split(";")
    .map((part) => part.trim())
    .find((part) => part.startsWith(prefix));
  return pair === undefined || pair === prefix ? undefined : pair.slice(prefix.length);
}

/** Returns the `Set-Cookie` of a session that lasts for `maxAgeMs`, or with an empty secret and 0 the end of one. */
export function sessionCookie(secret: string, { tls, maxAgeMs }: { tls: boolean; maxAgeMs: number }): string {
  const maxAge = Math.max(0, Math.floor(maxAgeMs / 1000));
  return `${nameOf(tls)}=${secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${maxAge}${tls ? "; Secure" : ""}`;
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
