/** The names of the cookies with which someone is signed in, and how they are kept from apps. Pure. */

export const SESSION_COOKIE = "hibernaut_session";

/** With this prefix, browsers take the cookie over TLS only, for this host alone, so that no other host of the domain plants one. */
export const SECURE_SESSION_COOKIE = `__Host-${SESSION_COOKIE}`;

/**
 * Returns a `Cookie` field without the platform's sessions, undefined if nothing is left. Browsers send cookies to every
 * port of a host, so to apps as well.
 */
export function withoutSessions(field: string): string | undefined {
  if (!field.includes(SESSION_COOKIE)) return field;
  const pairs = field.split(";").filter((pair) => !isSession((pair.split("=", 1)[0] ?? "").trim()));
  return pairs.length === 0 ? undefined : pairs.join(";").trim();
}

function isSession(name: string): boolean {
  return name === SESSION_COOKIE || name === SECURE_SESSION_COOKIE;
}
