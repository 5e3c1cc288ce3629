/**
 * The nftables rules that keep one client from taking the platform's time with new connections. Pure.
 *
 * Only the kernel can: a program has to accept a connection to see who it is from, and has paid for it then. The rules are in a
 * table of their own, which is emptied of rules and never deleted while the platform is there: what was counted stays counted
 * when machines come and go.
 */
import type { Names } from "./names.ts";

/** What clients may open. */
export interface ClientLimits {
  /** New connections per second of an address, or of a /64 of IPv6. 0: no limit. */
  perSecond: number;
  /** Addresses and networks that stand for many clients, and have no limit. */
  exempt: readonly string[];
}

export const NO_CLIENT_LIMITS: ClientLimits = { perSecond: 0, exempt: [] };

/** The counter of packets that were dropped. */
export const DROPPED = "dropped";
/** A client that was quiet may open this many seconds' worth at once, as a browser or a load test does that starts. */
const BURST_S = 5;
/**
 * How many seconds a client is remembered after its last attempt. After {@link BURST_S} there is nothing to remember: it has its
 * whole burst again.
 */
const REMEMBERED_S = 2 * BURST_S;
/** How many clients are remembered at once, in some 10 MB of the kernel. Those that come when it is full have no limit. */
const ADDRESSES = 65_536;
/** A client that has one address of IPv6 has all of its /64. */
const NETWORK_MASK = "ffff:ffff:ffff:ffff::";

/** Returns the table's text, for these TCP ports of the host. */
export function clientTable(
  { tapPrefix, clientTable: table, owner }: Names,
  { perSecond, exempt }: ClientLimits,
  ports: readonly number[],
): string {
  return `table inet ${table} {
  comment "${owner}"
}
flush table inet ${table}
table inet ${table} {
  counter ${DROPPED} { }
${perSecond === 0 || ports.length === 0 ? "" : limitOf({ perSecond, exempt, ports, anyBridge: `${tapPrefix.slice(0, 3)}*` })}}
`;
}

function limitOf({
  perSecond,
  exempt,
  ports,
  anyBridge,
}: ClientLimits & { ports: readonly number[]; anyBridge: string }): string {
  // An element keeps the limit that it was made with, so each limit has sets of its own.
  const [four, six] = [`rate_${perSecond}`, `rate6_${perSecond}`];
  const set = (type: string) => `{ type ${type}; size ${ADDRESSES}; flags dynamic,timeout; timeout ${REMEMBERED_S}s; }`;
  const limit = `limit rate over ${perSecond}/second burst ${BURST_S * perSecond} packets`;
  return `  set ${four} ${set("ipv4_addr")}
  set ${six} ${set("ipv6_addr")}
  # Dropped, so that clients try again a second later. When a set is full, its rule does not match.
  chain first {
    ${[
      ...exempt.map((network) => `${network.includes(":") ? "ip6" : "ip"} saddr ${network} return`),
      `update @${four} { ip saddr ${limit} } counter name ${DROPPED} drop`,
      `update @${six} { ip6 saddr & ${NETWORK_MASK} ${limit} } counter name ${DROPPED} drop`,
    ].join("\n    ")}
  }
  chain input {
    type filter hook input priority filter - 20; policy accept;
    # Who is on the host has its CPU anyway, and machines have a limit of their own.
    iifname "lo" accept
    iifname "${anyBridge}" accept
    tcp dport { ${ports.join(", ")} } tcp flags & (fin | syn | rst | ack) == syn jump first
  }
`;
}
