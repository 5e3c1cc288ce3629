/**
 * The nftables rules for what machines connect to, as their owners' rules say. Pure.
 *
 * They are in tables of their own. Their sets are filled again whenever a machine's rules change, except for those that hold
 * what name servers answered, and what was refused: those are kept. They only ever narrow what the other rules leave open.
 */
import { createHash } from "node:crypto";
import { APP_ADDRESSES } from "@hibernaut/domain/app-network";
import type { Egress } from "@hibernaut/domain/egress";
import { DNS_PORT } from "@hibernaut/domain/own-ports";
import { formatSubnet, overlap, type Subnet } from "@hibernaut/lib/ipv4";
import type { Doors } from "../../contract.ts";
import type { Names } from "../names.ts";
import { addressOf, GATEWAY_HOST } from "../subnet.ts";

/** A machine with rules. */
export interface Governed {
  address: string;
  egress: Egress;
}

interface EgressInput {
  names: Names;
  subnet: Subnet;
  machines: readonly Governed[];
  /** Where the host judges by names. */
  doors: Doors;
}

/** Where a machine is, and its address. */
export interface Home {
  tap: string;
  address: string;
}

/** Addresses of names, of all machines: `MOST_LEARNT` for each that a subnet has. */
const NAMED_SIZE = 262_144;
/** Refused destinations that are remembered, of all machines; the rate below keeps one from filling it. */
const REFUSED_SIZE = 16_384;
/** Minutes after which a destination that was refused counts as a new one. */
const REFUSED_MIN = 10;
/** How many refused destinations of one machine are remembered: a few that any program tries, and then one per minute. */
const REFUSED_RATE = { perMinute: 1, burst: 20 };
/** As many as the largest subnet of a bridge has. */
const ADDRESSES = 1024;
/** An ARP message for IPv4, with the zeros that fill an Ethernet frame. Without its head. */
const ARP_BYTES = 46;

/** The set of what was refused, in either table. */
export const REFUSED_SET = "refused";
/** The set of addresses that stand for names, in either table. */
export const NAMED_SET = "named";

/** The set of where machines are. It changes with every machine, and the rules do not. */
const HOMES_SET = "homes";

/** Returns a text that replaces the rules. Without a machine that has any, it removes the tables. */
export function egressRuleset(input: EgressInput): string {
  const { names, machines } = input;
  if (machines.length === 0) return noEgress(names);
  return `${hostTable(input)}${bridgeTable(input)}`;
}

/** Returns a text that closes addresses of names again. An element whose time is over is not there any more, so it is added first. */
export function forgetting({
  names: { egressTable: table },
  forgotten,
}: Pick<EgressInput, "names"> & { forgotten: readonly string[] | "all" }): string {
  const each = (family: string) => {
    if (forgotten === "all") return `flush set ${family} ${table} ${NAMED_SET}\n`;
    const element = `element ${family} ${table} ${NAMED_SET} { ${[...new Set(forgotten)].join(", ")} }\n`;
    return forgotten.length === 0 ? "" : `add ${element}delete ${element}`;
  };
  return ["inet", "bridge"].map(each).join("");
}

/** Returns a text that says where all machines are, with rules or without. */
export function homesText({ egressTable: table }: Names, homes: readonly Home[]): string {
  const elements = homes.map(({ tap, address }) => `"${tap}" . ${address}`).join(", ");
  const fill = homes.length === 0 ? "" : `add element bridge ${table} ${HOMES_SET} { ${elements} }\n`;
  return `flush set bridge ${table} ${HOMES_SET}\n${fill}`;
}

/** Returns a text that removes the tables, whether they exist or not. */
export function noEgress({ egressTable: table }: Pick<Names, "egressTable">): string {
  return ["inet", "bridge"].map((family) => `table ${family} ${table}\ndelete table ${family} ${table}\n`).join("");
}

/**
 * Returns the mark of connections that these rules have let through. Other rules have another one, so connections that
 * are open while rules change are judged again.
 */
function generationOf(egress: Egress): number {
  const known = knownMarks.get(egress);
  if (known !== undefined) return known;
  const hash = createHash("sha256").update(JSON.stringify(egress)).digest().readUInt32BE(0);
  const mark = (hash & 0x7fffffff) | 1; // 0 is the mark of a connection that has none
  knownMarks.set(egress, mark);
  return mark;
}

/** A change of one machine's rules looks at those of all, which may be long. */
const knownMarks = new WeakMap<Egress, number>();

const pairs = ({ address, egress }: Governed, which: "allowed" | "denied") =>
  egress[which].map((network) => `${address} . ${formatSubnet(network)}`);

/** Packets to the host, and through it to the outside. */
function hostTable({ names, subnet, machines, doors: { gate, dns } }: EgressInput): string {
  const { bridge, egressTable: table } = names;
  const gateway = addressOf(subnet, GATEWAY_HOST);
  const marks = machines.map(({ address, egress }) => ({ address, mark: generationOf(egress) }));
  const sets = [
    set(
      "gated",
      "ipv4_addr",
      machines.filter(isGated).map(({ address }) => address),
    ),
    set(
      "injecting",
      "ipv4_addr",
      machines.filter(({ egress }) => egress.injected !== undefined).map(({ address }) => address),
    ),
    set(
      "judged",
      "ipv4_addr . mark",
      marks.map(({ address, mark }) => `${address} . ${mark}`),
    ),
    ...commonSets(machines, () => true),
    set(
      "generation",
      "ipv4_addr : mark",
      marks.map(({ address, mark }) => `${address} : ${mark}`),
      "map",
    ),
  ];
  const gated = `iifname "${bridge}" ip saddr @gated ip daddr != ${formatSubnet(subnet)} ip saddr . ip daddr != @allowed`;
  // Of names that something is added for, also where addresses are open.
  const injecting = `iifname "${bridge}" ip saddr @injecting ip daddr != ${formatSubnet(subnet)} ip saddr . ip daddr @${NAMED_SET}`;
  const led =
    gate === undefined ? [] : [`tcp dport 80 redirect to :${gate.http}`, `tcp dport 443 redirect to :${gate.tls}`];
  const redirects = [gated, injecting].flatMap((which) => led.map((where) => `${which} ${where}`));
  const ports = gate === undefined ? "" : `tcp dport { ${gate.http}, ${gate.tls} }`;
  // Only what was led there: it is nobody's server.
  const closed =
    gate === undefined ? "" : `${ports} iifname ${anyBridge(names)} ct status & dnat == 0 reject with tcp reset`;
  const entrance = gate === undefined ? "" : `ct status dnat ${ports} accept`;
  const server = dns ? `ip daddr ${gateway} meta l4proto { tcp, udp } th dport ${DNS_PORT} accept` : "";
  return `${begin("inet", names, sets)}
table inet ${table} {
  ${sets.map(({ full }) => full).join("\n  ")}
${refusing(["meta l4proto tcp reject with tcp reset", "reject with icmp type admin-prohibited"])}
  chain pass {
    ct mark set ip saddr map @generation accept
  }
  chain judge {
    ip saddr . ct mark @judged accept
    ip saddr . ip daddr @allowed goto pass
    # Of a name, these ports are reached only where the name is certain. Without the second, a browser would try QUIC.
    # The machines' own subnet, the host in it, and apps' own addresses have no certainty to wait for: nothing leads there.
    ip daddr != { ${formatSubnet(subnet)}, ${APP_ADDRESSES} } ip saddr . ip daddr @${NAMED_SET} meta l4proto { tcp, udp } th dport { 80, 443 } goto refuse
    # Where all else is open, names that something is added for are learnt, too, and that opens nothing.
    ip saddr @closed ip saddr . ip daddr @${NAMED_SET} goto pass
    ip saddr . ip daddr @denied goto refuse
    ip saddr @closed goto refuse
    goto pass
  }
  # Only what a known connection sends back is not judged: packets without a connection are.
  chain forward {
    type filter hook forward priority filter - 15; policy accept;
    iifname != "${bridge}" accept
    ip saddr != @governed accept
    ct direction reply accept
    jump judge
  }
  chain input {
    type filter hook input priority filter - 15; policy accept;
    ${closed}
    iifname != "${bridge}" accept
    ip saddr != @governed accept
    ct direction reply accept
    ${server}
    ${entrance}
    ct status dnat ct original ip daddr ${APP_ADDRESSES} accept
    jump judge
  }
  # To an app's own address, before it is led to this host.
  chain ways {
    type filter hook prerouting priority dstnat - 10; policy accept;
    iifname != "${bridge}" accept
    ip daddr != ${APP_ADDRESSES} accept
    ip saddr != @governed accept
    ct direction reply accept
    jump judge
  }
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    ${redirects.join("\n    ")}
  }
}
`;
}

/** Packets to other machines of the app. Answers are packets, too: they do not leave where connections could not. */
function bridgeTable({ names, subnet, machines }: EgressInput): string {
  const { tapPrefix, egressTable: table } = names;
  const sets = commonSets(machines, (network) => overlap(network, subnet));
  return `${begin("bridge", names, sets)}
table bridge ${table} {
  ${sets.map(({ full }) => full).join("\n  ")}
${refusing(["drop"])}
  # What asks for a machine could be what its sender wants to tell it, and so could what comes after its end.
  chain questions {
    meta length > ${ARP_BYTES} drop
    oifname . arp daddr ip != @${HOMES_SET} drop
    arp saddr ip . arp daddr ip @allowed accept
    arp saddr ip @closed arp saddr ip . arp daddr ip @${NAMED_SET} accept
    arp saddr ip . arp daddr ip @denied drop
    arp saddr ip @closed drop
  }
  chain forward {
    type filter hook forward priority -10; policy accept;
    iifname != "${tapPrefix}*" accept
    ether type arp arp saddr ip @governed jump questions
    ip saddr != @governed accept
    # To the address of a machine by the MAC of another one, or of all.
    oifname . ip daddr != @${HOMES_SET} drop
    ip saddr . ip daddr @allowed accept
    ip saddr @closed ip saddr . ip daddr @${NAMED_SET} accept
    ip saddr . ip daddr @denied goto refuse
    ip saddr @closed goto refuse
  }
}
`;
}

/** The bridges of all platforms of the host. */
function anyBridge({ tapPrefix }: Names): string {
  return `"${tapPrefix.slice(0, 3)}*"`;
}

/** Whether connections of the machine are judged by the name in them. */
function isGated({ egress }: Governed): boolean {
  return egress.names.length > 0;
}

interface SetText {
  kind: "set" | "map";
  name: string;
  bare: string;
  full: string;
}

function commonSets(machines: readonly Governed[], counts: (network: Subnet) => boolean): SetText[] {
  const relevant = machines.map(({ address, egress }) => ({
    address,
    egress: { ...egress, allowed: egress.allowed.filter(counts), denied: egress.denied.filter(counts) },
  }));
  const closed = machines.filter(({ egress }) => egress.closed);
  return [
    set(
      "governed",
      "ipv4_addr",
      machines.map(({ address }) => address),
    ),
    set(
      "closed",
      "ipv4_addr",
      closed.map(({ address }) => address),
    ),
    set(
      "allowed",
      "ipv4_addr . ipv4_addr; flags interval",
      relevant.flatMap((one) => pairs(one, "allowed")),
    ),
    set(
      "denied",
      "ipv4_addr . ipv4_addr; flags interval",
      relevant.flatMap((one) => pairs(one, "denied")),
    ),
  ];
}

function set(name: string, type: string, elements: readonly string[], kind: "set" | "map" = "set"): SetText {
  const list = elements.length === 0 ? "" : `elements = { ${elements.join(", ")} };`;
  return { kind, name, bare: `${kind} ${name} { type ${type}; }`, full: `${kind} ${name} { type ${type}; ${list} }` };
}

/**
 * Makes what is not there yet, takes all rules away, and removes the sets that are made again afterwards. They are not
 * emptied instead: to fill a set of networks would take the kernel ten times as long then, and of a set that it is making
 * larger or smaller at that moment it may leave elements, so that a map could not be filled ("File exists").
 */
function begin(family: string, names: Names, sets: readonly SetText[]): string {
  const { egressTable: table, owner } = names;
  const kept = [
    `set ${NAMED_SET} { type ipv4_addr . ipv4_addr; size ${NAMED_SIZE}; flags timeout; }`,
    `set ${REFUSED_SET} { type ipv4_addr . ipv4_addr . inet_proto . inet_service; size ${REFUSED_SIZE}; flags dynamic,timeout; timeout ${REFUSED_MIN}m; }`,
    `set refused_rate { type ipv4_addr; size ${ADDRESSES}; flags dynamic,timeout; timeout ${REFUSED_MIN}m; }`,
    ...(family === "bridge" ? [`set ${HOMES_SET} { type ifname . ipv4_addr; }`] : []),
  ];
  return `table ${family} ${table} {
  comment "${owner}"
  ${[...sets.map(({ bare }) => bare), ...kept].join("\n  ")}
}
flush table ${family} ${table}
${sets.map(({ kind, name }) => `delete ${kind} ${family} ${table} ${name}`).join("\n")}`;
}

/** Remembers a destination, unless the machine tries many, and ends with `verdicts`. */
function refusing(verdicts: readonly string[]): string {
  const { perMinute, burst } = REFUSED_RATE;
  return `  chain say_no {
    ${verdicts.join("\n    ")}
  }
  chain refuse {
    add @refused_rate { ip saddr limit rate over ${perMinute}/minute burst ${burst} packets } goto say_no
    meta l4proto { tcp, udp } add @${REFUSED_SET} { ip saddr . ip daddr . meta l4proto . th dport }
    goto say_no
  }`;
}
