/** Where a request belongs that came over plain HTTP, and should have come over HTTPS: a pure rule. */
import type { RequestHead } from "./contract.ts";
import { CHALLENGE_PATH } from "./http/challenge.ts";
import { splitAuthority } from "./http/grammar.ts";

const USUAL_PORT = 443;

/**
 * Returns the address to redirect to. Undefined if the request may stay as it is: it came over HTTPS, to this proxy or
 * to one in front of it, or there is no HTTPS to redirect to.
 *
 * @param tlsPort the port on which this proxy serves HTTPS, if it does
 */
export function httpsLocation(
  { secure, host, target, fields, to }: Pick<RequestHead, "secure" | "host" | "target" | "fields" | "to">,
  tlsPort: number | undefined,
): string | undefined {
  // Authorities that issue certificates ask over plain HTTP only.
  const staysPlain = !target.startsWith("/") || target.startsWith(CHALLENGE_PATH);
  if (secure || to !== undefined || staysPlain) return undefined;
  // Only trusted proxies can say so: the others' fields are gone by now.
  const said = (name: string) => fields.findLast(({ key }) => key === name)?.value;
  const scheme = said("x-forwarded-proto");
  if (scheme === undefined) {
    if (tlsPort === undefined) return undefined;
    return `https://${host}${tlsPort === USUAL_PORT ? "" : `:${tlsPort}`}${target}`;
  }
  if (scheme.toLowerCase() !== "http") return undefined;
  // The port of the proxy in front is not known here. HTTPS has one that needs no telling.
  return `https://${splitAuthority(said("x-forwarded-host") ?? host)?.host ?? host}${target}`;
}
