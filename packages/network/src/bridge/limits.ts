/**
 * The nftables rules that keep one machine from filling the host's table of connections. Pure.
 *
 * They are in a table of their own, which is emptied of rules and never deleted while the platform is there: what was
 * counted stays counted when the other rules are loaded again.
 */
import type { Names } from "./names.ts";

/** What each machine may open, to the host and through it. 0: no limit. */
export interface FlowLimits {
  /** Connections that the host knows at once. A flow of datagrams counts as one. */
  connections: number;
  /** New connections per second. */
  perSecond: number;
}

export const NO_LIMITS: FlowLimits = { connections: 0, perSecond: 0 };

/** A machine that was quiet may open this many seconds' worth at once, as a program does that starts. */
const BURST_S = 2;

/** A ruleset that loads only where the kernel counts connections. For a check, not to be loaded. */
export const FLOW_PROBE = `table inet hibernaut_probe {
  set flows { type ipv4_addr; size 1; flags dynamic; }
  chain count { add @flows { ip saddr ct count over 1 } drop; }
}`;

/** As many as the largest subnet of a bridge has. Not those of the current one: a set cannot be made larger later. */
const ADDRESSES = 1024;

/** Returns the table's text. */
export function flowTable({ bridge, flowTable: table, owner }: Names, { connections, perSecond }: FlowLimits): string {
  // An element keeps the limit that it was made with, so each limit has a set of its own.
  const [flows, rate] = [`flows_${connections}`, `rate_${perSecond}`];
  const sets = [
    ...(connections === 0 ? [] : [`set ${flows} { type ipv4_addr; size ${ADDRESSES}; flags dynamic; }`]),
    ...(perSecond === 0 ? [] : [`set ${rate} { type ipv4_addr; size ${ADDRESSES}; flags dynamic; }`]),
  ];
  const rules = [
    // Dropped, so that programs try again a second later.
    ...(perSecond === 0
      ? []
      : [`add @${rate} { ip saddr limit rate over ${perSecond}/second burst ${BURST_S * perSecond} packets } drop`]),
    ...(connections === 0 ? [] : [`add @${flows} { ip saddr ct count over ${connections} } goto refuse`]),
  ];
  return `table inet ${table} {
  comment "${owner}"
}
flush table inet ${table}
table inet ${table} {
  ${sets.join("\n  ")}
  chain refuse {
    meta l4proto tcp reject with tcp reset
    reject with icmp type admin-prohibited
  }
  # Only a connection's first packet, which the kernel has not confirmed: it counts once, and costs nothing afterwards.
  chain first {
    ct state != new return
    ct status & confirmed != 0 return
    ${rules.join("\n    ")}
  }
  chain input {
    type filter hook input priority filter - 20; policy accept;
    iifname "${bridge}" jump first
  }
  chain forward {
    type filter hook forward priority filter - 20; policy accept;
    iifname "${bridge}" jump first
  }
}
`;
}
