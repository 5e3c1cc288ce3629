/** Where a machine may connect to: the rules as clients send them, and what they come to. Pure. */
import { formatAddress, overlap, parseAddress, parseSubnet, type Subnet } from "@hibernaut/lib/ipv4";

/** Each entry costs the kernel a place in a set, for each machine that has it. */
export const MAX_EGRESS_ENTRIES = 64;
/** Of a name (RFC 1035), with `*.` before it. */
export const EGRESS_ENTRY_MAX_LENGTH = 255;
/** Labels of letters, digits, hyphens and underscores; at least two, so that no entry stands for a whole top-level domain. */
const NAME = /^(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/i;
const EVERYTHING: Subnet = { base: 0, prefix: 0 };

/** The rules, as clients send and receive them. */
export interface EgressConfig {
  /** What holds for all that neither list names. Default: allow. */
  default?: "allow" | "deny";
  /** Addresses, networks and, where all else is denied, names. They come before `deny`. */
  allow?: string[];
  /** Addresses and networks. */
  deny?: string[];
}

/** What rules come to. */
export interface Egress {
  /** Whether all that no list names is refused. */
  closed: boolean;
  /** Networks that may be reached, none inside another. */
  allowed: readonly Subnet[];
  /** Networks that may not be, none inside another. */
  denied: readonly Subnet[];
  /** Names that may be reached, in lower case; `*.example.com` stands for all names below example.com. */
  names: readonly string[];
  /** What is added to requests to these names, encrypted. Absent when nothing is. It opens nothing. */
  injected?: Readonly<Record<string, string>>;
}

/** What a machine without rules of its own may reach. */
const ANYTHING: Egress = { closed: false, allowed: [], denied: [], names: [] };

/** Returns what is wrong with rules that fulfil the schema, and where. Undefined when nothing is. */
export function egressRefusal(config: EgressConfig): { field: string; message: string } | undefined {
  for (const [index, entry] of (config.allow ?? []).entries()) {
    const field = `allow[${index}]`;
    if (networkOf(entry) !== undefined) continue;
    if (!NAME.test(entry)) return { field, message: notAnEntry(entry) };
    if (config.default !== "deny")
      return {
        field,
        message: `${entry} is a name, and names can be allowed only where everything else is refused. Set \`default\` to deny, or leave the name out.`,
      };
  }
  for (const [index, entry] of (config.deny ?? []).entries()) {
    const field = `deny[${index}]`;
    if (networkOf(entry) !== undefined) continue;
    const message = NAME.test(entry)
      ? `${entry} is a name, and a machine could reach what is behind it by its address. Set \`default\` to deny and allow what it needs, or deny networks such as 192.0.2.0/24.`
      : notAnEntry(entry);
    return { field, message };
  }
  return undefined;
}

function notAnEntry(entry: string): string {
  if (entry.includes(":")) return `${entry} is not an IPv4 address or network. Machines have no IPv6: leave it out.`;
  return `${entry} is not an address such as 192.0.2.7, a network such as 192.0.2.0/24 (all bits after the prefix are 0), or a name such as example.com or *.example.com.`;
}

/** Returns what rules come to. Entries that {@link egressRefusal} refuses have no effect. */
export function egressOf(config: EgressConfig): Egress {
  const allow = config.allow ?? [];
  const denied = networksOf(config.deny ?? []);
  const isEverything = denied.some(({ prefix }) => prefix === EVERYTHING.prefix);
  return {
    closed: config.default === "deny" || isEverything,
    allowed: networksOf(allow),
    denied: isEverything ? [] : denied,
    names: [...new Set(allow.filter((entry) => networkOf(entry) === undefined).map((name) => name.toLowerCase()))],
  };
}

/** Returns the rules with what is added to requests, by name and encrypted. */
export function withInjected(rules: Egress | undefined, injected: Record<string, string> | undefined) {
  if (injected === undefined || Object.keys(injected).length === 0) return rules;
  return { ...(rules ?? ANYTHING), injected };
}

/** Whether text is a name, or `*.` and one, as rules have them. */
export function isEgressName(text: string): boolean {
  return text.length <= EGRESS_ENTRY_MAX_LENGTH && NAME.test(text);
}

/** Whether a name is among those that rules allow. Case and a dot at the end make no difference. */
export function isNamed({ names }: Pick<Egress, "names">, name: string): boolean {
  const asked = plain(name);
  return names.some((one) => matches(one, asked));
}

/** What is added to requests to a name, encrypted: of several, what is for the name itself, or for most of it. */
export function injectedFor({ injected = {} }: Pick<Egress, "injected">, name: string): string | undefined {
  const asked = plain(name);
  const [best] = Object.keys(injected)
    .filter((one) => matches(one, asked))
    .toSorted((a, b) => (a === asked ? -1 : b === asked ? 1 : b.length - a.length));
  return best === undefined ? undefined : injected[best];
}

/** Whether rules let a machine reach a name over HTTP and TLS. Where all is open, addresses decide. */
export function mayName(rules: Egress, name: string): boolean {
  return !rules.closed || isNamed(rules, name);
}

function plain(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

function matches(entry: string, asked: string): boolean {
  return entry.startsWith("*.") ? asked.endsWith(entry.slice(1)) && asked.length > entry.length - 1 : asked === entry;
}

/** Whether rules let a machine reach an address, as far as addresses decide it. */
export function mayReach({ closed, allowed, denied }: Egress, address: string): boolean {
  const base = parseAddress(address);
  if (base === undefined) return false;
  const isIn = (networks: readonly Subnet[]) => networks.some((network) => overlap(network, { base, prefix: 32 }));
  return isIn(allowed) || !(closed || isIn(denied));
}

/** Returns an address or network of a list. Undefined for anything else. */
function networkOf(entry: string): Subnet | undefined {
  const address = parseAddress(entry);
  return address === undefined ? parseSubnet(entry) : parseSubnet(`${formatAddress(address)}/32`);
}

/** Networks are inside one another, or have nothing in common, so leaving out those inside others leaves no overlap. */
function networksOf(list: readonly string[]): Subnet[] {
  const networks = list.map(networkOf).filter((network) => network !== undefined);
  const widest = networks.toSorted((a, b) => a.prefix - b.prefix);
  const kept: Subnet[] = [];
  for (const network of widest) if (!kept.some((other) => overlap(other, network))) kept.push(network);
  return kept.toSorted((a, b) => a.base - b.base);
}
