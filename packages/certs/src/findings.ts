/** What a name lacks for a certificate, from what was found in DNS and at the port that an authority asks: pure rules. */
import { isIP } from "node:net";
import type { ChallengeKind, Finding } from "./contract.ts";
import { challengeRecord } from "./rules.ts";

/** What was found. */
export interface Facts {
  name: string;
  /** How the name is proven. */
  challenge: ChallengeKind;
  /** Addresses in DNS, or why the resolver did not answer. */
  addresses: readonly string[] | { unknown: string };
  /** The public addresses of this host; empty if they are not known. */
  ours: readonly string[];
  /** The CAA record set that applies, from the name or the nearest of its parents; empty if there is none. */
  caa: readonly CaaRecord[] | { unknown: string };
  /** By which names CAA records allow the authority, or why the authority did not answer. */
  caaIdentities: readonly string[] | { unknown: string };
  /** Addresses in DNS that were not asked, because nobody outside can reach them. */
  unasked: readonly string[];
  /** What a request for a challenge at each other address got: the answer of this platform, or something else. */
  answers: readonly { address: string; ours: boolean; found: string }[];
  /** The setting of the DNS hook, if there is one. */
  hook: string | undefined;
  /** Whether a proxy serves TLS; undefined if proxies run in processes of their own. */
  tls: boolean | undefined;
}

/** A CAA record: `issue` and `issuewild` name who may issue. */
export interface CaaRecord {
  /** The name that has it. */
  owner: string;
  tag: string;
  value: string;
}

/** How long resolvers may keep an address record, in seconds: short, because it is new and may be wrong. */
const TTL_S = 300;

/** Returns what a certificate for the name needs, and whether it is there. */
export function findingsOf(facts: Facts): Finding[] {
  const byDns = facts.challenge === "dns-01";
  return [authority(facts), ...(byDns ? [hook(facts)] : [dns(facts), ...port(facts)]), ...caa(facts), tls(facts)];
}

function authority({ caaIdentities }: Facts): Finding {
  if ("unknown" in caaIdentities)
    return missing("authority", `${caaIdentities.unknown}. Check the network and HIBERNAUT_ACME_DIRECTORY.`);
  return ok("authority", "The certificate authority answers.");
}

function dns({ name, addresses, ours }: Facts): Finding {
  if ("unknown" in addresses) return unknown("dns", `DNS did not answer for ${name}: ${addresses.unknown}.`);
  const records = ours.map((address) => addressRecord(name, address));
  if (addresses.length === 0) {
    const next =
      ours.length === 0
        ? "Add an A record with the public address of this host. Set HIBERNAUT_PUBLIC_ADDRESSES to see it here."
        : "Add one of these records:";
    return missing("dns", `${name} has no address in DNS. ${next}`, records);
  }
  const shown = addresses.join(", ");
  if (ours.length === 0)
    return unknown(
      "dns",
      `${name} leads to ${shown}. Whether that is this host is not known; set HIBERNAUT_PUBLIC_ADDRESSES to its public addresses.`,
    );
  const foreign = addresses.filter((address) => !ours.includes(address));
  if (foreign.length === 0) return ok("dns", `${name} leads to this host (${shown}).`);
  const found = `${name} leads to ${foreign.join(", ")}, which ${foreign.length === 1 ? "is" : "are"} not of this host. The authority may ask any of its addresses. Remove what is wrong, and use:`;
  return missing("dns", found, records);
}

/** What an authority finds at the port that it asks. */
function port({ name, challenge, unasked, answers }: Facts): Finding[] {
  const { what, number, url, setting } =
    challenge === "tls-alpn-01"
      ? ({ what: "port_443", number: 443, url: "https", setting: "HIBERNAUT_PROXY_TLS_LISTEN" } as const)
      : ({ what: "port_80", number: 80, url: "http", setting: "HIBERNAUT_PROXY_LISTEN" } as const);
  const internal = unasked.map((address) =>
    missing(
      what,
      `${name} leads to ${address}, which cannot be reached from outside, so the platform did not ask there. Remove the record. If the authority is in your own network, set HIBERNAUT_PUBLIC_ADDRESSES to the addresses at which it reaches this host.`,
    ),
  );
  const asked = answers.map(({ address, ours, found }) => {
    if (ours) return ok(what, `Port ${number} of ${address} leads to this platform's proxy.`);
    const next = `Lead port ${number} to the proxy (${setting}), and let it through the firewall. A host behind NAT may be unable to reach itself; then ask from elsewhere.`;
    return missing(what, `${url}://${name}/ at ${address} does not lead to this platform's proxy: ${found}. ${next}`);
  });
  return [...internal, ...asked];
}

function caa({ name, caa: records, caaIdentities }: Facts): Finding[] {
  if ("unknown" in caaIdentities || caaIdentities.length === 0) return [];
  if ("unknown" in records)
    return [unknown("caa", `DNS did not say whether CAA records forbid it: ${records.unknown}.`)];
  const applying = caaFor(name, records);
  if (applying.length === 0 || applying.some(({ value }) => caaIdentities.includes(caIdentity(value)))) return [];
  const [{ owner, tag }] = applying as [CaaRecord, ...CaaRecord[]];
  const wanted = `${owner}. ${TTL_S} IN CAA 0 ${tag} "${caaIdentities[0]}"`;
  const found = `The CAA records of ${owner} do not allow this authority to issue certificates for ${name}. Add:`;
  return [missing("caa", found, [wanted])];
}

/** The records that limit who may issue: `issuewild` comes before `issue` for wildcards (RFC 8659 4.3). */
function caaFor(name: string, records: readonly CaaRecord[]): readonly CaaRecord[] {
  const wild = name.startsWith("*.") ? records.filter(({ tag }) => tag === "issuewild") : [];
  return wild.length > 0 ? wild : records.filter(({ tag }) => tag === "issue");
}

/** `letsencrypt.org; accounturi=...` names letsencrypt.org. */
function caIdentity(value: string): string {
  return (value.split(";")[0] ?? "").trim().toLowerCase();
}

function hook({ name, hook: program }: Facts): Finding {
  const record = challengeRecord(name);
  if (program !== undefined) return ok("dns_hook", `${program} adds and removes the TXT records at ${record}.`);
  return missing(
    "dns_hook",
    `${name} is proven by TXT records at ${record}, and no program adds them. Set HIBERNAUT_ACME_DNS_HOOK.`,
  );
}

function tls({ tls: listens }: Facts): Finding {
  if (listens === undefined)
    return unknown("tls", "Proxies run in processes of their own. Set HIBERNAUT_PROXY_TLS_LISTEN for them.");
  if (listens) return ok("tls", "The proxy serves HTTPS.");
  return missing(
    "tls",
    "The proxy does not serve HTTPS. Set HIBERNAUT_PROXY_TLS_LISTEN=0.0.0.0:443 and start it again.",
  );
}

function addressRecord(name: string, address: string): string {
  return `${name}. ${TTL_S} IN ${isIP(address) === 6 ? "AAAA" : "A"} ${address}`;
}

const ok = (what: Finding["what"], found: string): Finding => ({ what, status: "ok", found, records: [] });
const unknown = (what: Finding["what"], found: string): Finding => ({ what, status: "unknown", found, records: [] });
const missing = (what: Finding["what"], found: string, records: readonly string[] = []): Finding => ({
  ...{ what, status: "missing", found },
  records,
});
