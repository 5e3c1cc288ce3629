/**
 * The nftables rules of a platform, as one text that replaces all of them at once. Pure. Comments in the text explain
 * the rules. Sets make the cost of a packet independent of the number of machines.
 */
import { APP_ADDRESSES, groupOfNetwork, isNetwork } from "@hibernaut/domain/app-network";
import { formatSubnet, type Subnet } from "@hibernaut/lib/ipv4";
import { METADATA_NETWORKS } from "@hibernaut/lib/public-addresses";
import type { Endpoint, Way } from "../contract.ts";
import { noEgress } from "./egress/rules.ts";
import type { Names } from "./names.ts";
import { addressOf, GATEWAY_HOST } from "./subnet.ts";

/** A machine's connection to the bridge. */
export interface Port {
  tap: string;
  mac: string;
  address: string;
  /** Machines with the same one may reach each other. */
  group: string;
}

interface RulesetInput {
  names: Names;
  subnet: Subnet;
  ports: readonly Port[];
  /** Where connections to apps' own addresses are led. */
  ways: readonly Way[];
  /** TCP ports of the host that control machines, such as the API. No machine of any platform may reach them. */
  controlPorts: readonly number[];
  /** The same of other computers, and of this one where another program has it, as a cluster's etcd. */
  controlAddresses: readonly Endpoint[];
  /** Addresses and networks outside that no machine of this platform may reach. */
  blocked: readonly string[];
}

/** Returns the rules for these machines. */
export function rulesetOf(input: RulesetInput): string {
  return `${bridgeTable(input)}\n${hostTable(input)}`;
}

/** Returns a text that removes the tables, whether they exist or not. */
export function noRuleset({ table, flowTable, clientTable, ...names }: Names): string {
  const own = [table, flowTable, clientTable].map((name) => empty("inet", name));
  return `${empty("bridge", table)}${own.join("")}${noEgress(names)}`;
}

/** Adds a table before deleting it, because deleting a table that does not exist would fail. */
function empty(family: string, table: string): string {
  return `table ${family} ${table}\ndelete table ${family} ${table}\n`;
}

/** The numbers by which the kernel tells groups apart. */
function numbersOf(ports: readonly Port[]): Map<string, number> {
  const groups = [...new Set(ports.map(({ group }) => group))].sort();
  return new Map(groups.map((group, index) => [group, index + 1]));
}

/** Frames between taps, and between taps and the host. */
function bridgeTable({ names, subnet, ports }: RulesetInput): string {
  const { table, tapPrefix, owner } = names;
  const numbers = numbersOf(ports);
  const gateway = addressOf(subnet, GATEWAY_HOST);
  return `${empty("bridge", table)}table bridge ${table} {
  comment "${owner}"
  set senders {
    type ifname . ether_addr . ipv4_addr
    ${elements(ports.map(({ tap, mac, address }) => `"${tap}" . ${mac} . ${address}`))}
  }
  map group_of_tap {
    type ifname : mark
    ${elements(ports.map(({ tap, group }) => `"${tap}" : ${numbers.get(group)}`))}
  }
  set taps_of_group {
    type ifname . mark
    ${elements(ports.map(({ tap, group }) => `"${tap}" . ${numbers.get(group)}`))}
  }
  chain prerouting {
    type filter hook prerouting priority -300; policy accept;
    iifname "${tapPrefix}*" jump from_machine
  }
  # A machine can send only from its tap, with its MAC and its address: no IPv6, no VLAN, no DHCP.
  chain from_machine {
    ether type != { ip, arp } drop
    # Nobody can reply to port 0.
    ip protocol udp udp sport 0 drop
    iifname . ether saddr . arp saddr ip @senders iifname . arp saddr ether . arp saddr ip @senders accept
    iifname . ether saddr . ip saddr @senders accept
    drop
  }
  # Machines reach each other on the bridge only. Without this rule, the host would route packets between them.
  chain input {
    type filter hook input priority 0; policy accept;
    iifname "${tapPrefix}*" ip daddr ${formatSubnet(subnet)} ip daddr != ${gateway} drop
  }
  chain forward {
    type filter hook forward priority 0; policy accept;
    iifname "${tapPrefix}*" meta mark set iifname map @group_of_tap oifname . meta mark @taps_of_group accept
    iifname "${tapPrefix}*" drop
  }
}`;
}

/** Packets that leave the bridge through the host, and those that come back. */
function hostTable({ names, subnet, ports, ways, controlPorts, controlAddresses, blocked }: RulesetInput): string {
  const { table, bridge, tapPrefix, owner } = names;
  const anyBridge = `"${tapPrefix.slice(0, 3)}*"`;
  const gateway = addressOf(subnet, GATEWAY_HOST);
  const control =
    controlPorts.length === 0
      ? ""
      : `iifname ${anyBridge} tcp dport { ${controlPorts.join(", ")} } reject with tcp reset`;
  const controlSet = `iifname ${anyBridge} ip daddr . tcp dport @control reject with tcp reset`;
  // Only what was led there: at these ports, the rules for what a machine connects to would know nothing of the app.
  const doors = [...new Set(ways.map(({ to }) => to))].join(", ");
  const entrances =
    doors === "" ? "" : `iifname ${anyBridge} tcp dport { ${doors} } ct status & dnat == 0 reject with tcp reset`;
  const own = ownAddresses(names, ports, ways);
  return `${empty("inet", table)}table inet ${table} {
  comment "${owner}"
  set control {
    type ipv4_addr . inet_service
    ${elements(controlAddresses.map(({ address, port }) => `${address} . ${port}`))}
  }
${own.sets}  # Before any address translation. Refused rather than dropped, so that programs that look for a cloud continue at once.
  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    # What comes over the bridge comes from the bridge. Frames to the addresses of its own protocols, such as LLDP's, do not.
    iifname "${tapPrefix}*" drop
    iifname "${bridge}" ip daddr 127.0.0.0/8 drop
${refusals(`iifname "${bridge}" ip daddr != ${formatSubnet(subnet)}`, [...METADATA_NETWORKS, ...blocked])}
  }
${own.chain}  chain input {
    type filter hook input priority filter - 10; policy accept;
    ${control}
    ${controlSet}
    ${entrances}
    ip daddr ${gateway} iifname != { "${bridge}", "lo" } drop
  }
  chain forward {
    type filter hook forward priority filter - 10; policy accept;
    ${controlSet}
    # Seen here only where br_netfilter is loaded. The bridge's own table has decided already.
    iifname "${bridge}" oifname "${bridge}" accept
    iifname "${bridge}" oifname ${anyBridge} drop
${own.refusals}    # The guest does not know the MTU of the route to the outside.
    iifname "${bridge}" tcp flags syn / syn,rst tcp option maxseg size set rt mtu
    iifname "${bridge}" ct state established,related accept
    # A connection that the kernel forgot during a long sleep: the app learns this now, not after minutes of silence.
    iifname "${bridge}" meta l4proto tcp ct state invalid reject with tcp reset
    iifname "${bridge}" ct state new tcp flags & (fin | syn | rst | ack) != syn reject with tcp reset
    iifname "${bridge}" accept
    oifname "${bridge}" ct state established,related accept
    oifname "${bridge}" drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${formatSubnet(subnet)} oifname != "${bridge}" masquerade
  }
}
`;
}

/**
 * The rules for apps' own addresses. Without a machine in a network, none: the range may mean something else to the host. With
 * one, nothing is sent outside that was meant for a neighbour, whether anything is led to it or not.
 *
 * Only machines of an app's network are led to it. To others, its address is one of many at which nothing is.
 */
function ownAddresses({ bridge }: Names, ports: readonly Port[], ways: readonly Way[]) {
  const networked = ports.filter(({ group }) => isNetwork(group));
  if (networked.length === 0) return { sets: "", chain: "", refusals: "" };
  const numbers = numbersOf(ports);
  const led = new Map<string, number>();
  for (const { network, address, port, to } of ways) {
    const number = numbers.get(groupOfNetwork(network));
    // A map must not have an element twice.
    if (number !== undefined) led.set(`${number} . ${address} . ${port}`, to);
  }
  return {
    sets: `  map networks {
    type ipv4_addr : mark
    ${elements(networked.map(({ address, group }) => `${address} : ${numbers.get(group)}`))}
  }
  map ways {
    type mark . ipv4_addr . inet_service : inet_service
    ${elements([...led].map(([way, to]) => `${way} : ${to}`))}
  }
`,
    chain: `  # Before the rules of machines for what they connect to, which lead elsewhere what is not for this host.
  chain ways {
    type nat hook prerouting priority dstnat - 5; policy accept;
    iifname "${bridge}" ip daddr ${APP_ADDRESSES} meta l4proto tcp meta mark set ip saddr map @networks redirect to :meta mark . ip daddr . tcp dport map @ways
  }
  # The mark was for the map alone: the host may route by marks.
  chain unmark {
    type filter hook prerouting priority dstnat + 5; policy accept;
    iifname "${bridge}" ct status dnat ct original ip daddr ${APP_ADDRESSES} meta mark set 0
  }
`,
    refusals: `    # An app has the ports of its services there, and nothing outside does.
    iifname "${bridge}" ip daddr ${APP_ADDRESSES} meta l4proto tcp reject with tcp reset
    iifname "${bridge}" ip daddr ${APP_ADDRESSES} reject with icmp type port-unreachable
`,
  };
}

/** One rule for each network, as a set must not name an address twice. Machines have no IPv6. */
function refusals(packets: string, networks: readonly string[]): string {
  return networks
    .filter((network) => !network.includes(":"))
    .map((network) => `    ${packets} ip daddr ${network} reject with icmp type admin-prohibited`)
    .join("\n");
}

/** Leaves out an empty list, which nft refuses. */
function elements(lines: readonly string[]): string {
  return lines.length === 0 ? "" : `elements = { ${lines.join(", ")} }`;
}
