/** When to order, to renew and to try again, and for which names: pure rules. Times are milliseconds since 1970. */
import type { OrderFailure } from "@hibernaut/domain/certificate";
import { HibernautError } from "@hibernaut/domain/errors";
import type { CertificateStatus, ChallengeKind, HostChallenge } from "./contract.ts";

/** A renewal is due after this share of the lifetime: 30 days before the end of 90, which leaves time to repair things. */
const RENEW_AFTER = 2 / 3;
/** Up to this share of the lifetime earlier, so that certificates made together are not renewed together. */
const RENEW_SPREAD = 1 / 30;
/** The first pause after a failed order. Let's Encrypt allows 5 failures an hour for each name. */
const RETRY_FIRST_MS = 5 * 60_000;
/** The longest pause: within the last third of 90 days, there are some 60 more attempts. */
const RETRY_LONGEST_MS = 12 * 3_600_000;
/** Pauses are up to this share longer, so that names that failed together do not try again together. */
const RETRY_SPREAD = 0.2;
/** An authority that asks for a longer pause is wrong, or wants the operator to act: one attempt a day does no harm. */
const LONGEST_HOLD_MS = 24 * 3_600_000;

/** What is known about a certificate that was issued. */
export interface Lifetime {
  notBefore: number;
  notAfter: number;
}

/** Returns when a renewal is due. `spread`, from 0 to 1, is constant for a certificate and differs between them. */
export function renewalTime({ notBefore, notAfter }: Lifetime, spread: number): number {
  return Math.round(notBefore + (notAfter - notBefore) * (RENEW_AFTER - RENEW_SPREAD * spread));
}

/**
 * Returns when to try again after `attempts` failures in a row. An authority's own wish counts if it is longer, within a
 * bound. `random` is from 0 to 1.
 */
export function retryTime(
  attempts: number,
  { now, random, retryAfterMs = 0 }: { now: number; random: number; retryAfterMs?: number | undefined },
): { next: number; held: boolean } {
  const doubled = Math.min(RETRY_FIRST_MS * 2 ** (attempts - 1), RETRY_LONGEST_MS);
  const own = doubled * (1 + RETRY_SPREAD * random);
  const wished = Math.min(retryAfterMs, LONGEST_HOLD_MS);
  return { next: Math.round(now + Math.max(own, wished)), held: wished > own };
}

/** What is known about a name when deciding about it. */
export interface Situation {
  now: number;
  /** The certificate that there is. `current`: from the authority that is configured now. */
  certificate: (Lifetime & { renewAt: number; current: boolean }) | undefined;
  failure: Pick<OrderFailure, "next"> | null;
  /** Whether its app has a hostname that the certificate covers. */
  used: boolean;
}

/** Returns when the next order for the name is due; a time that has passed means now. Infinity for never. */
export function orderTime({ now, certificate, failure, used }: Situation): number {
  if (!used) return Number.POSITIVE_INFINITY;
  const due = certificate === undefined || !certificate.current ? now : certificate.renewAt;
  return failure === null ? due : Math.max(due, Date.parse(failure.next));
}

/** Returns the status that people see. */
export function statusOf({ now, certificate, failure, used }: Situation): CertificateStatus {
  if (!used) return "unused";
  if (certificate === undefined) return failure === null ? "ordering" : "failed";
  if (certificate.notAfter <= now) return "expired";
  return failure === null ? "valid" : "overdue";
}

/**
 * Returns how to prove a name. Only DNS proves a wildcard (RFC 8555 7.1.3); names of their own need no hook.
 *
 * @param hosts how hostnames are proven on this platform
 */
export function challengeFor(name: string, hosts: HostChallenge): ChallengeKind {
  return name.startsWith("*.") ? "dns-01" : hosts;
}

/** Returns the name of the TXT record that proves a name. */
export function challengeRecord(name: string): string {
  return `_acme-challenge.${name.replace(/^\*\./, "")}`;
}

/** Whether a certificate for `name`, which may be a wildcard, covers `hostname`. A wildcard stands for one label. */
export function covers(name: string, hostname: string): boolean {
  if (!name.startsWith("*.")) return name === hostname;
  return hostname.slice(hostname.indexOf(".")) === name.slice(1);
}

/**
 * Returns the name that a certificate is to be for, in lowercase. Throws `failed_precondition` unless the app has it: a
 * certificate for any other name would only be a way to make the authority refuse us.
 *
 * @param own the app's hostnames, and its names under the proxy's suffixes
 */
export function checkName(text: string, app: string, own: readonly string[]): string {
  const name = text.toLowerCase().replace(/\.$/, "");
  const shown = name.slice(0, 100);
  if (isLocal(name))
    throw refused(name, `No authority issues a certificate for ${shown}: it is a name of this host only.`);
  if (own.some((hostname) => covers(name, hostname))) return name;
  if (name.startsWith("*."))
    throw refused(
      name,
      `App ${app} has no hostname that ${shown} would cover. Add one first: hibernaut hostnames add www${shown.slice(1)} --app ${app}`,
    );
  throw refused(
    name,
    `App ${app} does not have the hostname ${shown}. Add it first: hibernaut hostnames add ${shown} --app ${app}`,
  );
}

/** Whether a name leads to this host only, so that no authority could verify it. */
export function isLocal(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost") || !name.includes(".");
}

function refused(name: string, message: string): HibernautError {
  return new HibernautError("failed_precondition", message, { hostname: name.slice(0, 253) });
}
