/**
 * Where webhooks may lead. Anyone who creates one chooses an address that the platform then sends requests to, and the platform
 * reaches networks that its users do not. So addresses are checked after the name is resolved, at every connection: a name
 * may lead elsewhere a moment later.
 */
import { lookup as resolve } from "node:dns";
import { type BlockList, isIP, type LookupFunction } from "node:net";
import { isIn, isPublicAddress } from "@hibernaut/lib/public-addresses";

/** What the settings allow. */
export interface TargetPolicy {
  /** Addresses of this host and of private networks. */
  privateAddresses: boolean;
  /** Connections without TLS. */
  http: boolean;
  /** Addresses that nothing may reach which others have a say in, whatever else is allowed. */
  blocked: BlockList;
}

/** A connection that was not made because of where it leads. */
export class BlockedTarget extends Error {
  override name = "BlockedTarget";
}

/** Longer URLs are not accepted by every server. */
const MAX_URL = 2_000;

/** Says why a URL is not acceptable, with what to do about it. Undefined if it is. */
export function refusedUrl(text: string, policy: TargetPolicy): string | undefined {
  if (text.length > MAX_URL) return `The URL has ${text.length} characters; it may have up to ${MAX_URL}.`;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    return "The URL is not a valid https address. Use one such as https://example.com/hook.";
  if (url.hash !== "") return "The URL has a fragment (#), which no server gets. Leave it out.";
  if (url.protocol === "http:" && !policy.http)
    return "The URL must begin with https, because anyone on the way could read the events. Set HIBERNAUT_WEBHOOK_HTTP=allow if that is acceptable.";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const local = /(^|\.)localhost\.?$/.test(host);
  if (isIn(policy.blocked, host)) return blockedAddress(host);
  if (!policy.privateAddresses && (local || (isIP(host) !== 0 && !isPublicAddress(host)))) return refusedAddress(host);
  return undefined;
}

/** What there is to say about an address that is refused. */
function refusedAddress(host: string): string {
  return `${host} leads to this host or a private network, which webhooks may not reach. Use a public address, or set HIBERNAUT_WEBHOOK_PRIVATE_ADDRESSES=allow.`;
}

/** The same for an address that a setting blocks. */
function blockedAddress(host: string): string {
  return `${host} leads to a network that HIBERNAUT_BLOCKED_NETWORKS keeps webhooks and machines away from. Use another address.`;
}

/**
 * Returns a `lookup` for connections that gives only addresses that the policy allows. A URL with an address in place of a
 * name is not looked up: check it with {@link refusedUrl}.
 */
export function guardedLookup(
  { privateAddresses, blocked }: TargetPolicy,
  lookup: typeof resolve = resolve,
): LookupFunction {
  return (hostname, options, done) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return done(error, "", 0);
      const open = found.filter(({ address }) => !isIn(blocked, address));
      const allowed = privateAddresses ? open : open.filter(({ address }) => isPublicAddress(address));
      const [first] = allowed;
      const refused = open.length === 0 ? blockedAddress : refusedAddress;
      if (first === undefined) return done(new BlockedTarget(refused(hostname)), "", 0);
      if (options.all === true) done(null, allowed);
      else done(null, first.address, first.family);
    });
  };
}
