/**
 * Looks in DNS, and at the port that an authority asks, what a name lacks for a certificate. What it means is decided in
 * findings.ts. The owner of a hostname decides where its DNS leads: the platform must not ask its own network for them.
 */
import { Resolver } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { abortable, within } from "@hibernaut/lib/async";
import { publicAddresses } from "@hibernaut/lib/public-addresses";
import { messageOf } from "@hibernaut/lib/text";
import type { CertificateAuthority, Finding } from "./contract.ts";
import { type CaaRecord, findingsOf } from "./findings.ts";
import { LOOK_MS, type ProbeOptions, probe } from "./probe.ts";
import { challengeFor } from "./rules.ts";

export interface ExamineOptions extends ProbeOptions {
  authority: Pick<CertificateAuthority, "describe">;
  /** The host's public addresses, which are asked whatever they are; empty to take those of its interfaces. */
  addresses: readonly string[];
  hook: string | undefined;
  /** Whether a proxy serves TLS; undefined if proxies run in processes of their own. */
  tls: boolean | undefined;
  /** For tests: DNS servers (`address:port`). */
  dnsServers?: readonly string[];
}

/** Answers that mean that there is no such record, rather than that nobody knows. */
const NONE: readonly unknown[] = ["ENODATA", "ENOTFOUND"];
/** More addresses than this tell no more, and each takes a request. */
const MOST_ADDRESSES = 8;

/** Never rejects, except with the signal's reason. */
export async function examine(options: ExamineOptions, name: string, signal: AbortSignal): Promise<Finding[]> {
  const resolver = new Resolver({ timeout: LOOK_MS / 2, tries: 2 });
  if (options.dnsServers !== undefined) resolver.setServers(options.dnsServers);
  const stop = () => resolver.cancel();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const challenge = challengeFor(name, options.challenge);
    const [addresses, caa, caaIdentities] = await Promise.all([
      challenge === "dns-01" ? [] : known(addressesOf(resolver, name)),
      known(caaOf(resolver, name.replace(/^\*\./, ""))),
      known(identities(options.authority, signal)),
    ]);
    signal.throwIfAborted();
    const found = "unknown" in addresses ? [] : addresses.slice(0, MOST_ADDRESSES);
    const outside = new Set([...publicAddresses(found), ...options.addresses]);
    const asked = found.filter((address) => outside.has(address));
    const answers = await probe(options, name, asked, signal);
    const { hook, tls } = options;
    return findingsOf({
      name,
      challenge,
      addresses,
      ours: ownAddresses(options.addresses),
      caa,
      caaIdentities,
      unasked: found.filter((address) => !outside.has(address)),
      answers,
      hook,
      tls,
    });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** The answer, or why there is none. */
function known<T>(looking: Promise<T>): Promise<T | { unknown: string }> {
  return looking.catch((error: unknown) => ({ unknown: messageOf(error).replace(/\.$/, "") }));
}

async function addressesOf(resolver: Resolver, name: string): Promise<string[]> {
  const found = await Promise.all([orNone(resolver.resolve4(name)), orNone(resolver.resolve6(name))]);
  return found.flat();
}

/** The records of the name, or of the nearest parent that has some (RFC 8659 3). */
async function caaOf(resolver: Resolver, name: string): Promise<CaaRecord[]> {
  for (let owner = name; owner.includes("."); owner = owner.slice(owner.indexOf(".") + 1)) {
    const found = await orNone(resolver.resolveCaa(owner));
    if (found.length > 0)
      return found.flatMap(({ issue, issuewild }) => [
        ...(issue === undefined ? [] : [{ owner, tag: "issue", value: issue }]),
        ...(issuewild === undefined ? [] : [{ owner, tag: "issuewild", value: issuewild }]),
      ]);
  }
  return [];
}

function orNone<T>(looking: Promise<T[]>): Promise<T[]> {
  return looking.catch((error: NodeJS.ErrnoException) => {
    if (NONE.includes(error.code)) return [];
    throw error;
  });
}

async function identities(authority: ExamineOptions["authority"], signal: AbortSignal): Promise<readonly string[]> {
  const limit = within(signal, LOOK_MS, "The certificate authority");
  return (await abortable(authority.describe(limit), limit)).caaIdentities;
}

function ownAddresses(configured: readonly string[]): readonly string[] {
  if (configured.length > 0) return configured;
  const found = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return publicAddresses(found.map(({ address }) => address));
}
